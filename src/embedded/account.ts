/** Whom the embedded server runs as. */
import { execFileSync, spawnSync } from "node:child_process";

/** Spread into spawn options; empty means: as ourselves. */
export interface Account {
  uid?: number;
  gid?: number;
}

/**
 * PostgreSQL refuses to run as root, so root lends it an unprivileged user that every machine has.
 * It must have a passwd entry: initdb looks itself up.
 */
export function serverAccount(): Account {
  if (process.getuid?.() !== 0) return {};
  for (const name of ["postgres", "_postgres", "nobody"]) {
    const uid = idOf("-u", name);
    const gid = idOf("-g", name);
    if (uid !== undefined && gid !== undefined) return { uid, gid };
  }
  throw new Error("embedded PostgreSQL: as root it needs a user named postgres or nobody");
}

/** Whether the account reaches a folder: asked of the kernel, which also knows ACLs and mounts. */
export function canEnter(account: Account, folder: string): boolean {
  const asked = spawnSync("/bin/sh", ["-c", 'cd "$0"', folder], { ...account, cwd: "/" });
  return asked.status === 0;
}

function idOf(flag: "-u" | "-g", name: string): number | undefined {
  try {
    return Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: "pipe" }));
  } catch {
    return undefined; // no such user here
  }
}
