/** Namespaces that a run is about, where they are too many to be named in it. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { NAMESPACES_MAX } from "../../core/credit-run.ts";
import { Problem } from "../../core/problem.ts";
import { IntegerText } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { readHead } from "../../store/heads.ts";
import { insertNamespaceList } from "../../store/namespace-lists.ts";

/** One number a line. */
export const NamespaceLines = z.strictObject({ namespaces: z.string().min(1) });

/** SHA-256 (base64) over the numbers in ascending order, each once and with a newline. */
export interface Uploaded {
  namespaces_sha256: string;
  namespaces: string;
}

/** @throws Problem `not-found`, `invalid-request`, `too-many` for more than 100,000 */
export async function uploadNamespaces(
  { sql }: { sql: Sql },
  log: string,
  { namespaces: text }: z.infer<typeof NamespaceLines>,
): Promise<Uploaded> {
  if ((await readHead(sql, log)) === undefined) throw new Problem("not-found");
  const lines = text.split("\n").filter((line) => line !== "");
  if (lines.length > NAMESPACES_MAX) throw new Problem("too-many");
  if (lines.length === 0 || !lines.every((line) => IntegerText.safeParse(line).success)) {
    throw new Problem("invalid-request", { members: ["namespaces"] });
  }
  const all = [...new Set(lines.map(BigInt))].sort((a, b) => Number(a > b) - Number(a < b));
  const digest = createHash("sha256");
  for (const namespace of all) digest.update(`${namespace}\n`);
  const namespaces_sha256 = digest.digest("base64");
  await insertNamespaceList(sql, log, namespaces_sha256, all);
  return { namespaces_sha256, namespaces: String(all.length) };
}
