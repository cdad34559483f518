/** Where the embedded default keeps what it has: everything under one folder. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const DATA_DEFAULT = "data";

type LogKeyFile = "log" | "nextLog" | "formerLog" | "receipt" | "nextReceipt" | "formerReceipt";
type KeyFile = LogKeyFile | "issuer" | "principal";

export interface DataFolder {
  postgres: string;
  redis: string;
  archive: string;
  /** Those that are next, or were before, need not be there. */
  keys: Record<KeyFile, string>;
}

export function dataFolder(data: string): DataFolder {
  const key = (name: string): string => join(data, "keys", name);
  return {
    postgres: join(data, "postgres"),
    redis: join(data, "redis"),
    archive: join(data, "archive"),
    keys: {
      log: key("log.pem"),
      nextLog: key("next-log.pem"),
      formerLog: key("former-log.pem"),
      receipt: key("receipt.pem"),
      nextReceipt: key("next-receipt.pem"),
      formerReceipt: key("former-receipt.pem"),
      issuer: key("issuer.pem"),
      principal: key("principal.key"),
    },
  };
}

/** Beside `src` in a checkout; the compiled files lie one folder deeper. */
export function migrationsFolder(): string {
  const folders = ["../../migrations", "../../../migrations"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  const found = folders.find((folder) => existsSync(folder));
  if (found === undefined) throw new Error(`no migrations in ${folders.join(" or ")}`);
  return found;
}
