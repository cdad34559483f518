/** An export's manifest: whose word it is, and which columns its file must have. */
import type { Verify } from "../../src/core/ed25519.ts";
import { exportText, Manifest, MEMBERS } from "../../src/core/export/manifest.ts";
import { type Column, TABLES, type TableName } from "../../src/core/export/tables.ts";
import { parseCanonical } from "../../src/core/json.ts";
import { openNote, type Vkey } from "../../src/core/note.ts";
import { decodeUtf8 } from "../../src/core/text.ts";
import { CannotLook } from "../finding.ts";

interface Signed {
  json: Uint8Array;
  note: Uint8Array;
}

/**
 * @returns what is wrong with it, in words
 * @throws CannotLook for a note that none of the keys has signed
 */
export function openManifest(
  { json, note }: Signed,
  { vkeys, verify }: { vkeys: readonly Vkey[]; verify: Verify },
): Manifest | string {
  const opened = openNote(decodeUtf8(note) ?? "", vkeys, verify);
  if ("problem" in opened) {
    if (opened.problem === "unknown-key") throw new CannotLook("the note is by no given key");
    return `its note: ${opened.problem}`;
  }
  const manifest = Manifest.safeParse(parseCanonical(json)).data;
  const text = decodeUtf8(json);
  if (manifest === undefined || text === undefined) return "it is no canonical JSON of its shape";
  const { name } = manifest;
  const signed = opened.verified.some((origin) => opened.text === exportText(origin, name, text));
  return signed ? manifest : "its note is of another manifest";
}

/** Members that such a file is never asked for with, and those that it cannot do without. */
export function misfitsIn({ name, parameters }: Manifest): string[] {
  const own = MEMBERS[name];
  const missing = Object.keys(own).filter((member) => {
    return own[member as keyof typeof own] === "needed" && !(member in parameters);
  });
  return [...Object.keys(parameters).filter((member) => !(member in own)), ...missing];
}

/** Of the directory of names, which is no part of the log: one for each kind of number that a file has. */
const NAMES: readonly { column: Column; of: readonly string[] }[] = [
  { column: nameColumn("namespace_name"), of: ["namespace_id", "root_namespace_id"] },
  { column: nameColumn("project_name"), of: ["project_id"] },
  { column: nameColumn("runner_name"), of: ["runner_id"] },
];
export const CREDITS: Column = { name: "credits", type: "decimal", places: 10 };

/** The log's columns come first; undefined where the manifest names others than what was asked for has. */
export function columnsOf({ columns, name, parameters }: Manifest): readonly Column[] | undefined {
  if (name === "focus") return undefined;
  const own: readonly Column[] = TABLES[name satisfies TableName];
  const named = NAMES.filter(({ of }) => own.some((column) => of.includes(column.name)));
  const all = [
    ...own,
    ...(parameters.credit_minutes === undefined ? [] : [CREDITS]),
    ...(parameters.names ? named.map(({ column }) => column) : []),
  ];
  const fits = columns.length === all.length && all.every(({ name }, at) => name === columns[at]);
  return fits ? all : undefined;
}

/** Columns that the log does not give. */
export const BESIDE_THE_LOG: ReadonlySet<string> = new Set(NAMES.map(({ column }) => column.name));

function nameColumn(name: string): Column {
  return { name, type: "text", nullable: true };
}
