/**
 * A log judged again from its bytes alone, with a fresh prefix: every entry has to be what the entries
 * before it and its own content make of it (DESIGN §1, invariant 7).
 */
import { admit } from "../../src/core/admit.ts";
import { type Body, CONTROL_KINDS, type Entry, type EntryOf } from "../../src/core/entry.ts";
import { judge, trackingOf } from "../../src/core/judge.ts";
import { readCompact } from "../../src/core/jws.ts";
import { Prefix } from "../../src/core/prefix.ts";
import { fact } from "../../src/core/report.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { digestOf, entriesOf, type House, ofKind, reportIn } from "./door.ts";

interface Standing {
  index: bigint;
  fact: string;
}

/** All entries of a log, after everything that can be checked of them. */
export async function readBack({ database }: House, log: string): Promise<Entry[]> {
  const entries = await entriesOf(database.reader, log);
  replay(entries);
  return entries;
}

/** Disposition lines of a log, as `counter code index`. */
export async function linesOf(house: House, log: string): Promise<string[]> {
  return ofKind(await readBack(house, log), "disposition").flatMap(({ body }) =>
    body.lines.map(({ code, counter, index }) => `${counter} ${code} ${index}`),
  );
}

/** @throws Error naming the first entry that is not what it has to be */
export function replay(entries: readonly Entry[]): void {
  const [genesis] = entries;
  if (genesis?.kind !== "log") throw new Error("entry 0 is no log");
  const prefix = new Prefix(genesis);
  const jobs = new Map<string, Standing>();
  const digests = new Set<string>();
  for (const entry of entries.slice(1)) {
    const found = finding(prefix, jobs, digests, entry);
    if (found !== undefined) throw new Error(`entry ${entry.index} (${entry.kind}): ${found}`);
    prefix.apply(entry);
  }
}

function finding(
  prefix: Prefix,
  jobs: Map<string, Standing>,
  digests: Set<string>,
  entry: Entry,
): string | undefined {
  switch (entry.kind) {
    case "usage":
    case "hold":
    case "conflict":
      return findingOfReport(prefix, jobs, digests, entry);
    case "disposition":
      return findingOfLines(jobs, digests, entry);
    case "log":
      return "a second one";
    default:
      admit(prefix, entry.kind, entry.body as Body<typeof entry.kind>, entry.at);
      return undefined;
  }
}

function findingOfReport(
  prefix: Prefix,
  jobs: Map<string, Standing>,
  digests: Set<string>,
  entry: EntryOf<"usage"> | EntryOf<"hold"> | EntryOf<"conflict">,
): string | undefined {
  const { jws } = entry.body;
  const kid = readCompact(jws)?.kid ?? "";
  const report = reportIn(jws);
  const digest = digestOf(jws);
  if (digests.has(digest)) return "the same bytes a second time";
  digests.add(digest);
  const judgement = judge(prefix, kid, report, entry.at);
  const job = `${trackingOf(prefix, kid, report)} ${report.job.id}`;
  const standing = jobs.get(job);
  const mine = encodeBase64(fact(report));
  if (standing?.fact === mine) return "a duplicate";
  if (judgement.kind === "hold") {
    const agreed = entry.kind === "hold" && entry.body.code === judgement.code;
    return agreed ? undefined : `should be held: ${judgement.code}`;
  }
  if (standing !== undefined) {
    const agreed = entry.kind === "conflict" && entry.body.stands === String(standing.index);
    return agreed ? undefined : `should conflict with ${standing.index}`;
  }
  const body = JSON.stringify({ ...judgement.body, jws }, members);
  if (entry.kind !== "usage" || JSON.stringify(entry.body, members) !== body) {
    return "should be another usage";
  }
  jobs.set(job, { index: entry.index, fact: mine });
  return undefined;
}

function findingOfLines(
  jobs: Map<string, Standing>,
  digests: Set<string>,
  { body, index }: EntryOf<"disposition">,
): string | undefined {
  const counters = body.lines.map((line) => BigInt(line.counter));
  if (counters.some((counter, i) => counter < (counters[i - 1] ?? 0n))) return "counters descend";
  const standing = new Set(Array.from(jobs.values(), (job) => String(job.index)));
  for (const line of body.lines) {
    if (line.index !== "" && BigInt(line.index) >= index) return "names what comes later";
    if (line.code === "duplicate" && !standing.has(line.index)) return "a duplicate of nothing";
    if (line.code !== "counter-reused") {
      if (digests.has(line.digest)) return "accounts for bytes a second time";
      digests.add(line.digest);
    }
  }
  return undefined;
}

/** The members of both in one order. */
function members(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Index of the newest control entry. */
export function controlIndexOf(entries: readonly Entry[]): bigint {
  const kinds: readonly string[] = CONTROL_KINDS;
  return entries.findLast(({ kind }) => kinds.includes(kind))?.index ?? -1n;
}
