/** What the platform calls namespaces, projects and runners: for showing, and on no log. */
import { z } from "zod";
import { Problem } from "../../core/problem.ts";
import { isWellFormed, utf8Length } from "../../core/text.ts";
import { IntegerText } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { readHead } from "../../store/heads.ts";
import { NAMED_KINDS, putNames } from "../../store/names.ts";

/** Full paths of groups in groups are longer than what the log has texts for. */
const NAME_BYTES_MAX = 1_024;
const NAMES_MAX = 1_000;

/** Any text that can be stored: also what a spreadsheet would take for a formula, and line breaks. */
const Name = z.string().min(1).refine(isStorable);

export const NamedId = z.strictObject({ kind: z.enum(NAMED_KINDS), id: IntegerText });
const NewName = NamedId.extend({ name: Name });

/** No number of a kind twice: it would be open which of its names counts. */
export const NewNames = z.strictObject({
  names: z
    .array(NewName)
    .min(1)
    .max(NAMES_MAX)
    .refine((names) => new Set(names.map(({ kind, id }) => `${kind}/${id}`)).size === names.length),
});

/** How many were told. */
export interface Named {
  log: string;
  names: string;
}

/** What is named already is renamed; all others keep their names. @throws Problem `not-found` */
export async function nameAll(
  { sql }: { sql: Sql },
  log: string,
  { names }: z.infer<typeof NewNames>,
): Promise<Named> {
  if ((await readHead(sql, log)) === undefined) throw new Problem("not-found");
  await putNames(sql, log, names);
  return { log, names: String(names.length) };
}

function isStorable(text: string): boolean {
  return isWellFormed(text) && !text.includes("\0") && utf8Length(text) <= NAME_BYTES_MAX;
}
