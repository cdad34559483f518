/**
 * Takes what is new in one usage log into the spools: every line once, whenever the agent dies.
 * The order of effects does it: a group's reports with their places first, log by log, then the place
 * of the whole host. A line between the two is known by its log's place and is not signed again.
 */
import { closeSync, fstatSync, openSync } from "node:fs";
import { basename } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { type RawLine, readLines } from "./lines.ts";
import { type Reporter, reporter } from "./reporter.ts";
import type { Source } from "./sources.ts";
import { type AgentState, type Enrolment, enrolmentFor } from "./state.ts";
import type { Tally } from "./summary.ts";
import { type Line, readLine } from "./usagelog.ts";

/** A line of more is not the runner's. */
const LINE_BYTES_MAX = 1024 * 1024;
/** Lines of one commit: few enough for memory, many enough that syncing costs little. */
const GROUP_LINES = 256;

export interface Scan {
  state: AgentState;
  now: () => number;
  signal: AbortSignal | undefined;
  /** Of this run, by log. */
  tally: (log: string) => Tally;
  onLines: (lines: number, malformed: number) => void;
  onNotice: (notice: string) => void;
}

interface Group {
  lines: number;
  malformed: number;
  /** The file ends within a line that cannot be read as it is. */
  torn: boolean;
  /** End of the last line that is taken. */
  end: number;
  unrouted: Source["unrouted"];
  parts: Map<string, Part>;
}

/** What one log gets of a group. */
interface Part {
  offset: number;
  rejected: number;
  counters: Map<string, bigint>;
  reports: string[];
}

/** False when nothing was new. */
export async function scanFile(scan: Scan, path: string): Promise<boolean> {
  const fd = openSync(path, "r");
  try {
    const { size } = fstatSync(fd);
    const { source, replaced } = scan.state.sources.identify(fd, basename(path), size);
    if (replaced) scan.onNotice(`${path} was truncated or replaced: read from its start.`);
    const scanner = new Scanner(scan, path, source);
    const picked = await scanner.pickUp(fd);
    const read = await scanner.readOn(fd, size);
    return picked || read;
  } finally {
    closeSync(fd);
  }
}

class Scanner {
  readonly #scan: Scan;
  readonly #path: string;
  readonly #reporters = new Map<string, Reporter>();
  #source: Source;

  constructor(scan: Scan, path: string, source: Source) {
    this.#scan = scan;
    this.#path = path;
    this.#source = source;
  }

  /** Lines that were read before their instance was enrolled; false when there are none such. */
  async pickUp(fd: number): Promise<boolean> {
    const { offset, unrouted, enrolments } = this.#source;
    const now = this.#scan.state.settings.enrolments.length;
    if (unrouted.count === 0 || enrolments === now) return false;
    const bounds = { from: unrouted.from, to: offset, bytesMax: LINE_BYTES_MAX };
    let group = newGroup(unrouted.from, { count: 0, from: 0 });
    for (const raw of readLines(fd, bounds)) {
      const line = raw.bytes && readLine(raw.bytes);
      if (line?.kind === "record" || line?.kind === "rejected") this.#route(group, raw, line);
      if (++group.lines < GROUP_LINES) continue;
      await this.#commitParts(group);
      group = newGroup(raw.end, group.unrouted);
    }
    await this.#commitParts(group);
    const left = group.unrouted;
    this.#source = { ...this.#source, unrouted: left, enrolments: now };
    this.#scan.state.sources.update(this.#source);
    this.#scan.onLines(unrouted.count - left.count, 0);
    return left.count < unrouted.count;
  }

  /** What was appended since the file was last read; false when there is nothing. */
  async readOn(fd: number, size: number): Promise<boolean> {
    if (size === this.#source.size) return false;
    const bounds = { from: this.#source.offset, to: size, bytesMax: LINE_BYTES_MAX };
    let group = newGroup(bounds.from, this.#source.unrouted);
    for (const raw of readLines(fd, bounds)) {
      this.#take(group, raw);
      if (group.lines < GROUP_LINES || !raw.complete) continue;
      await this.#commit(group, raw.end);
      group = newGroup(raw.end, this.#source.unrouted);
    }
    await this.#commit(group, size);
    return true;
  }

  #take(group: Group, raw: RawLine): void {
    const line: Line = raw.bytes ? readLine(raw.bytes) : { kind: "malformed", reason: "too long" };
    if (line.kind !== "empty") group.lines += 1;
    if (line.kind === "malformed") {
      const what = raw.complete ? line.reason : `${line.reason}; the file ends within this line`;
      this.#scan.onNotice(`${this.#path}, byte ${raw.start}: malformed (${what})`);
      // Of a torn line the rest may still come: its place is kept, and it counts while it is torn.
      group.torn = !raw.complete;
      if (group.torn) return;
      group.malformed += 1;
    } else if (line.kind !== "empty") {
      this.#route(group, raw, line);
    }
    group.end = raw.end;
  }

  #route(group: Group, raw: RawLine, line: Extract<Line, { uniqueId: string }>): void {
    const runner = line.kind === "record" ? line.measurement.runner.uuid : "";
    const enrolment = enrolmentFor(this.#scan.state.settings.enrolments, line.uniqueId, runner);
    if (enrolment === undefined) {
      const { count, from } = group.unrouted;
      group.unrouted = { count: count + 1, from: count === 0 ? raw.start : from };
      return;
    }
    const { log, kid } = enrolment;
    const spool = this.#scan.state.spool(log);
    if (raw.end <= spool.offset(this.#source.id)) return; // signed before the agent was stopped
    const part: Part = group.parts.get(log) ?? {
      offset: 0,
      rejected: 0,
      counters: new Map(),
      reports: [],
    };
    group.parts.set(log, part);
    part.offset = raw.end;
    if (line.kind === "rejected") {
      part.rejected += 1;
      return;
    }
    const counter = (part.counters.get(kid) ?? spool.counter(kid)) + 1n;
    part.counters.set(kid, counter);
    part.reports.push(this.#reporter(enrolment)(line.measurement, counter, this.#scan.now()));
  }

  #reporter({ kid, log }: Enrolment): Reporter {
    const made = this.#reporters.get(kid) ?? reporter(this.#scan.state.key(kid), log);
    this.#reporters.set(kid, made);
    return made;
  }

  /** @param size how far the file was looked at, a torn line at its end included */
  async #commit(group: Group, size: number): Promise<void> {
    await this.#commitParts(group);
    this.#source = {
      ...this.#source,
      offset: group.end,
      size,
      malformed: this.#source.malformed + group.malformed,
      unrouted: group.unrouted,
      enrolments: this.#scan.state.settings.enrolments.length,
    };
    this.#scan.state.sources.update(this.#source);
    const malformed = group.malformed + (group.torn ? 1 : 0);
    this.#scan.onLines(group.lines, malformed);
  }

  async #commitParts(group: Group): Promise<void> {
    for (const [log, { counters, ...part }] of group.parts) {
      this.#scan.state.spool(log).commit({
        ...part,
        source: this.#source.id,
        counters: Object.fromEntries([...counters].map(([kid, last]) => [kid, String(last)])),
      });
      const tally = this.#scan.tally(log);
      tally.signed += part.reports.length;
      tally.rejected += part.rejected;
    }
    await breathe(); // signals and requests of the same process get their turn
    this.#scan.signal?.throwIfAborted();
  }
}

function newGroup(start: number, unrouted: Source["unrouted"]): Group {
  return { lines: 0, malformed: 0, torn: false, end: start, unrouted, parts: new Map() };
}
