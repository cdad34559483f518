/** An export's manifest: whose word it is, and which columns its file must have. */
import type { Verify } from "../../src/core/ed25519.ts";
import { exportText, Manifest } from "../../src/core/export/manifest.ts";
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

/** Of the directory of names, which is no part of the log. */
const NAMES: readonly Column[] = ["namespace_name", "project_name", "runner_name"].map((name) => {
  return { name, type: "text", nullable: true };
});
export const CREDITS: Column = { name: "credits", type: "decimal", places: 10 };

/** The log's columns come first; undefined where the manifest names others than what was asked for has. */
export function columnsOf({ columns, name, parameters }: Manifest): readonly Column[] | undefined {
  if (name === "focus") return undefined;
  const own: readonly Column[] = TABLES[name satisfies TableName];
  const more = [
    ...(parameters.credit_minutes === undefined ? [] : [CREDITS]),
    ...(parameters.names ? NAMES : []),
  ];
  const named = columns
    .slice(own.length)
    .map((each) => more.find((column) => column.name === each));
  const credited = named.includes(CREDITS) === (parameters.credit_minutes !== undefined);
  const fits = credited && own.every((column, at) => column.name === columns[at]);
  if (!named.every((column) => column !== undefined)) return undefined;
  return fits && new Set(columns).size === columns.length ? [...own, ...named] : undefined;
}

/** Columns that the log does not give. */
export const BESIDE_THE_LOG: ReadonlySet<string> = new Set(NAMES.map(({ name }) => name));
