/** What a copy holds of a checkpoint, and what is shown of it elsewhere: nothing that was there is lost. */
import type { Verify } from "../../src/core/ed25519.ts";
import { linesOf, noteOf, openNote, type Vkey } from "../../src/core/note.ts";
import type { SignatureLine } from "../../src/core/signature-line.ts";
import { encodeUtf8 } from "../../src/core/text.ts";
import { NOTE_BYTES_MAX } from "../source.ts";

/** Keys whose signatures can be told from junk: the log's, and the policy's witnesses'. */
export interface Known {
  vkeys: readonly Vkey[];
  verify: Verify;
}

/** A note's (C2SP signed-note leaves a limit to who reads; `linesOf` has this one). */
const LINES_MAX = 100;

/**
 * The held note with what the shown one brings: a line for each key that has none, known keys first, for
 * as long as it stays a note. What was there stays, but for a known key's line that does not hold where
 * there is one that does. Undefined where they are not two notes over one text.
 */
export function united(held: string, shown: string, known: Known): string | undefined {
  const [old, now] = [linesOf(held), linesOf(shown)];
  if (old === undefined || now === undefined || old.text !== now.text) return undefined;
  const judge = ({ id, line, name }: SignatureLine): "good" | "bad" | "unknown" => {
    const vkey = known.vkeys.find((key) => key.id === id && key.name === name);
    if (vkey === undefined) return "unknown";
    return "problem" in openNote(noteOf(old.text, [line]), [vkey], known.verify) ? "bad" : "good";
  };
  const good = now.lines.filter((line) => judge(line) === "good");
  const better = new Set(good.map(keyOf));
  const lines = old.lines.filter((line) => judge(line) !== "bad" || !better.has(keyOf(line)));
  const taken = new Set(lines.map(keyOf));
  for (const line of [...good, ...now.lines.filter((one) => judge(one) === "unknown")]) {
    if (taken.has(keyOf(line)) || !fits(old.text, [...lines, line])) continue;
    taken.add(keyOf(line));
    lines.push(line);
  }
  return noteOf(
    old.text,
    lines.map(({ line }) => line),
  );
}

/** Of a file of signature lines without a text: what is shown comes after what is held, each line once. */
export function unitedLines(held: string, shown: string): string {
  const [old, now] = [held, shown].map((text) => text.match(/[^\n]+\n?/g) ?? []);
  const lines = new Set(old);
  for (const line of now ?? []) {
    if (lines.size < LINES_MAX && held.length + shown.length <= NOTE_BYTES_MAX) lines.add(line);
  }
  return [...lines].join("");
}

function keyOf({ id, name }: SignatureLine): string {
  return `${name}+${id}`;
}

function fits(text: string, lines: readonly SignatureLine[]): boolean {
  const bytes = encodeUtf8(`${text}\n${lines.map(({ line }) => line).join("")}`).length;
  return lines.length <= LINES_MAX && bytes <= NOTE_BYTES_MAX;
}
