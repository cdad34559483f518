/** Extracts as files that say themselves what they are, and a manifest over all of them. */
import { createHash, type Hash as Digest } from "node:crypto";
import { closeSync, openSync, readdirSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Entry } from "../../src/core/entry.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { makeFolders } from "../durable.ts";
import { CannotLook } from "../finding.ts";
import type { Extract, Period, Row, Taking } from "./extract.ts";
import { formatDecimal, MONEY, parseDecimal } from "./money.ts";
import { OPERATION } from "./operation.ts";
import { PEOPLE } from "./people.ts";

export const EXTRACTS: readonly Extract[] = [...PEOPLE, ...MONEY, ...OPERATION];

/** What all files of a folder have in common. */
export interface Parameters {
  log: string;
  period: Period;
  /** The generator's version. */
  version: string;
  checkpoint: { size: string; root: string };
}

/** Of a file in the manifest; the last line of an extract says the same but for `sha256` of all its lines. */
export interface WrittenFile {
  file: string;
  sha256: string;
  [name: string]: Json;
}

const BUFFER_CHARS = 65_536;

/** NDJSON, each line canonical JSON: a header, the rows, a footer over the lines before it. */
class ExtractFile {
  readonly #extract: Extract;
  readonly #file: string;
  readonly #fd: number;
  readonly #lines = createHash("sha256");
  readonly #taking: Taking;
  readonly #sums: Map<string, bigint>;
  #text = "";
  #rows = 0n;
  #first = "";
  #last = "";

  constructor(folder: string, extract: Extract, { period, ...said }: Parameters) {
    this.#extract = extract;
    this.#file = `${extract.name}.ndjson`;
    this.#fd = openSync(join(folder, this.#file), "wx", 0o644);
    this.#sums = new Map((extract.sums ?? []).map((column) => [column, 0n]));
    this.#taking = extract.open(period, (row) => this.#put(row));
    const { controls, columns, name, what } = extract;
    const whose = { ...said, ...period, generator: "minutebook-audit" };
    this.#line({ extract: name, what, controls: [...controls], columns: [...columns], ...whose });
  }

  take(entry: Entry): void {
    this.#taking.take(entry);
  }

  /** @param at of the last entry of the log */
  end(at: string): WrittenFile {
    this.#taking.end?.(at);
    const sums = [...this.#sums].map(([column, sum]) => [column, formatDecimal(sum)]);
    const said = {
      rows: String(this.#rows),
      first_index: this.#first,
      last_index: this.#last,
      sums: Object.fromEntries(sums) as Record<string, string>,
    };
    const whole = this.#flush().copy();
    const footer = `${canonical({ ...said, sha256: whole.digest("base64") })}\n`;
    writeSync(this.#fd, footer);
    closeSync(this.#fd);
    const sha256 = this.#lines.update(footer).digest("base64");
    const { controls, what } = this.#extract;
    return { file: this.#file, sha256, what, controls: [...controls], ...said };
  }

  /** In the order of its columns' names, with all of them and no other. */
  #put(row: Row): void {
    const { columns } = this.#extract;
    if (Object.keys(row).length !== columns.length || columns.some((name) => !(name in row))) {
      throw new Error(`extract ${this.#extract.name}: not its columns`);
    }
    for (const [column, sum] of this.#sums) {
      this.#sums.set(column, sum + parseDecimal(row[column] ?? ""));
    }
    this.#rows += 1n;
    const index = row["index"] ?? "";
    if (index !== "") {
      if (this.#first === "" || BigInt(index) < BigInt(this.#first)) this.#first = index;
      if (this.#last === "" || BigInt(index) > BigInt(this.#last)) this.#last = index;
    }
    this.#line(row);
  }

  #line(line: Json): void {
    this.#text += `${canonical(line)}\n`;
    if (this.#text.length > BUFFER_CHARS) this.#flush();
  }

  #flush(): Digest {
    this.#lines.update(this.#text);
    writeSync(this.#fd, this.#text);
    this.#text = "";
    return this.#lines;
  }
}

export class EvidenceFolder {
  readonly #folder: string;
  readonly #period: Period;
  readonly #files: readonly ExtractFile[];
  readonly #others: WrittenFile[] = [];
  #at = "";

  /** @throws CannotLook where the folder cannot be made, or holds something already */
  constructor(folder: string, parameters: Parameters) {
    makeFolders(folder);
    if (readdirSync(folder).length > 0) throw new CannotLook(`${folder} is not empty`);
    this.#folder = folder;
    this.#period = parameters.period;
    this.#files = EXTRACTS.map((extract) => new ExtractFile(folder, extract, parameters));
  }

  take(entry: Entry): void {
    this.#at = entry.at;
    if (entry.at >= this.#period.to) return;
    for (const file of this.#files) file.take(entry);
  }

  /** A file of another form. */
  add(file: string, text: string, said: Readonly<Record<string, Json>>): void {
    writeFileSync(join(this.#folder, file), text, { flag: "wx" });
    const sha256 = createHash("sha256").update(text).digest("base64");
    this.#others.push({ file, sha256, ...said });
  }

  end(): WrittenFile[] {
    return [...this.#files.map((file) => file.end(this.#at)), ...this.#others];
  }

  /** What is about the others, and so is not in the manifest. */
  seal(file: string, text: string): void {
    writeFileSync(join(this.#folder, file), text, { flag: "wx" });
  }
}
