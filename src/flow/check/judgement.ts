/** The order of judgement again, entry by entry, from the prefix (BYTES §3). */
import { admit } from "../../core/admit.ts";
import type { Body, Entry, EntryOf, Kind } from "../../core/entry.ts";
import type { Sha256 } from "../../core/hash.ts";
import { judge, judgeReleased, trackingOf } from "../../core/judge.ts";
import { assertFollows } from "../../core/pack.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import { fact } from "../../core/report.ts";
import { supersedes } from "../../core/service.ts";
import { equal } from "../../core/text.ts";
import { type Cited, type Derived, readSigned, type Signed } from "./derive.ts";
import { disposition } from "./disposition.ts";
import type { Misjudged } from "./event.ts";

/** Of an entry that holds or accounts for reports; `prefix` are the entries before. */
export function* rejudge(
  entry: Entry,
  { signed }: Derived,
  prefix: Prefix,
  cited: Cited,
  hash: Sha256,
): Generator<Misjudged> {
  switch (entry.kind) {
    case "usage":
      if (signed) yield* usage(entry, signed, prefix);
      break;
    case "hold":
      if (signed) yield* hold(entry, signed, prefix, cited, hash);
      break;
    case "conflict":
      if (signed) yield* conflict(entry, signed, prefix, cited, hash);
      break;
    case "disposition":
      yield* disposition(entry, prefix, cited, hash);
      break;
  }
}

/**
 * Whether any other entry may stand after these; and then takes it into the prefix. `earlier` is the newest
 * version before it of the pack that it is one of.
 */
export function* admission(
  entry: Entry,
  prefix: Prefix,
  earlier: Body<"pack"> | undefined,
): Generator<Misjudged> {
  if (REPORTING.includes(entry.kind)) return;
  if (entry.kind === "service" && !supersedes(prefix.service, entry.body)) {
    yield [`a version after ${prefix.service?.version}`, `version ${entry.body.version}`];
  }
  try {
    admit(prefix, entry.kind, entry.body, entry.at);
    if (entry.kind === "pack") assertFollows(earlier, entry.body);
    if (entry.kind === "log_key") prefix.logKeys.assertNext(entry.body);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    yield ["an admissible entry", error.code];
  }
  try {
    prefix.apply(entry);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    yield ["an entry that can follow", error.message];
  }
}

const REPORTING: readonly Kind[] = ["usage", "hold", "conflict", "disposition"];

function* usage(
  { at, body }: EntryOf<"usage">,
  { kid, report }: Signed,
  prefix: Prefix,
): Generator<Misjudged> {
  const { hold, jws, ...found } = body;
  const judged =
    hold === undefined ? judge(prefix, kid, report, at) : judgeReleased(prefix, kid, report);
  if (judged.kind === "hold") {
    yield [`hold ${judged.code}`, "usage"];
    return;
  }
  const expected: Omit<Body<"usage">, "hold" | "jws"> = judged.body;
  const members = new Set([...Object.keys(expected), ...Object.keys(found)]);
  for (const member of members as Set<keyof typeof found>) {
    if (expected[member] !== found[member]) {
      yield [`${member} ${expected[member]}`, `${member} ${found[member]}`];
    }
  }
}

function* hold(
  { at, body }: EntryOf<"hold">,
  { kid, report }: Signed,
  prefix: Prefix,
  cited: Cited,
  hash: Sha256,
): Generator<Misjudged> {
  const measured = fact(report, hash);
  for (const entry of cited.values()) {
    const standing = entry.kind === "usage" ? readSigned(entry.body.jws, hash) : undefined;
    if (standing && equal(fact(standing.report, hash), measured)) yield ["duplicate", body.code];
  }
  const judged = judge(prefix, kid, report, at);
  const expected = judged.kind === "hold" ? judged.code : judged.kind;
  if (expected !== body.code) yield [expected, body.code];
}

/** Another fact of a job that stands, and nothing that would have been held. */
function* conflict(
  { at, body }: EntryOf<"conflict">,
  { kid, report }: Signed,
  prefix: Prefix,
  cited: Cited,
  hash: Sha256,
): Generator<Misjudged> {
  const judged = judge(prefix, kid, report, at);
  if (judged.kind === "hold") yield [`hold ${judged.code}`, "conflict"];
  const stands = cited.get(BigInt(body.stands));
  const standing = stands?.kind === "usage" ? readSigned(stands.body.jws, hash) : undefined;
  const sameJob =
    stands?.kind === "usage" &&
    stands.body.tracking === trackingOf(prefix, kid, report) &&
    standing?.report.job.id === report.job.id;
  if (!sameJob) yield ["stands: the usage of the same job", `stands ${body.stands}`];
  else if (equal(fact(standing.report, hash), fact(report, hash))) yield ["duplicate", "conflict"];
}
