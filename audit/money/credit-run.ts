/** A credit run and its lines: all that was approved, in one order, once, and taken back as a whole. */
import { sha256 } from "@noble/hashes/sha2.js";
import type { Body } from "../../src/core/entry.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import type { Findings, OpenCode } from "../finding.ts";
import type { Turn } from "../prefix/rule.ts";
import type { State } from "../prefix/state.ts";
import { micro, writeMicro } from "../tally/record.ts";
import type { Money } from "./state.ts";

/** What packs of a goodwill run name as their source; `pack_id` is `<index of the run>/<namespace>`. */
const PACK_SOURCE = "minutebook/credit_run";
const PACK_ID = /^(0|[1-9][0-9]{0,18})\/(0|[1-9][0-9]{0,18})$/;
/** A minute, in 10⁻⁶ compute-milliseconds. */
const MINUTE = 60_000n * 1_000_000n;

export interface CreditRun {
  body: Body<"credit_run">;
  /** Entries 0 … asOf−1 were looked at for it. */
  asOf: bigint;
  /** Lines that stand, their sum, and the digest over them. */
  written: bigint;
  sum: bigint;
  digest: ReturnType<typeof sha256.create> | undefined;
  /** The run that takes this one back. */
  reversed: bigint | undefined;
}

export function startRun(state: State, body: Body<"credit_run">, turn: Turn): void {
  const { runs } = state.money;
  turn.expect(body.lines !== "0", "credit-run", "a run of no line");
  if (body.reverses !== "") reverseRun(runs, body, turn);
  runs.set(turn.index, {
    body,
    asOf: asOfOf(body, turn),
    written: 0n,
    sum: 0n,
    digest: sha256.create(),
    reversed: undefined,
  });
}

function asOfOf({ selection }: Body<"credit_run">, { expect, index }: Turn): bigint {
  const [, said] = /"as_of":"([1-9][0-9]{0,18})"/.exec(selection) ?? [];
  const asOf = said === undefined ? undefined : BigInt(said);
  expect(asOf !== undefined && asOf <= index, "credit-run", `as of ${said ?? "nothing"}`);
  return asOf ?? 0n;
}

/** Once, as a whole, and only when it is whole. */
function reverseRun(runs: Map<bigint, CreditRun>, body: Body<"credit_run">, turn: Turn): void {
  const { form, lines, reverses, total } = body;
  const original = runs.get(BigInt(reverses));
  const name = `entry ${reverses}`;
  if (original === undefined) {
    turn.expect(false, "reversal", `${name} is no credit run`);
    return;
  }
  const { reversed } = original;
  turn.expect(reversed === undefined, "reversal-twice", `entry ${reversed} took back ${name}`);
  original.reversed ??= turn.index;
  const whole = isWritten(original) && original.body.reverses === "" && form === original.body.form;
  turn.expect(
    whole,
    "reversal",
    `${name} is not whole, takes one back itself, or is of another form`,
  );
  const equal = lines === original.body.lines && micro(total) === -micro(original.body.total);
  turn.expect(equal, "reversal", `${lines} lines of ${total}, and ${name} has other ones`);
}

/** The run that an adjustment's lines are of, as they come: gapless, in its approval, and no other. */
export function creditLines(state: State, body: Body<"adjustment">, turn: Turn): void {
  if (body.credit_run === "") return;
  const run = state.money.runs.get(BigInt(body.credit_run));
  const first = BigInt(body.first_line);
  const due = run !== undefined && run.body.form !== "goodwill_pack" && run.written === first;
  turn.expect(due, "credit-run-line", `line ${first} of run ${body.credit_run}`);
  if (run === undefined) return;
  const same = run.body.approval === body.approval && run.body.by === body.by;
  turn.expect(same, "credit-run-line", `not in the approval of run ${body.credit_run}`);
  for (const line of body.lines) takeLine(run, line, micro(line.amount));
  finish(run, turn);
}

export function isOfRun({ source }: { source: string }): boolean {
  return source === PACK_SOURCE;
}

/**
 * As `creditLines`, of a pack: a line of the run in its name, or of the one that takes that back.
 * @param before minutes of the version before
 */
export function creditPack({ money }: State, body: Body<"pack">, before: string, turn: Turn): void {
  if (!isOfRun(body)) return;
  const [, named = "", namespace = ""] = PACK_ID.exec(body.pack_id) ?? [];
  const given = named === "" ? undefined : money.runs.get(BigInt(named));
  const back = given?.reversed === undefined ? undefined : money.runs.get(given.reversed);
  const run = back ?? given;
  // Versions count lines: those that give, then those that take back.
  const version = (run?.written ?? 0n) + 1n + BigInt(back?.body.lines ?? 0);
  const isNext = run?.body.form === "goodwill_pack" && body.source_version === String(version);
  const due = isNext && namespace === body.namespace_id;
  turn.expect(due, "credit-run-line", `pack ${body.pack_id}, version ${body.source_version}`);
  if (run === undefined) return;
  const same = run.body.approval === body.approval && run.body.by === body.by;
  const taken = back === undefined || body.minutes === "0";
  turn.expect(same && taken, "credit-run-line", `pack ${body.pack_id} is not as its run has it`);
  if (back === undefined) giveOnce(money.given, run, body, turn);
  money.given.set(body.namespace_id, turn.index);
  const { expires_in, minutes, namespace_id, purchased_in } = body;
  const more = BigInt(minutes) - (back === undefined ? 0n : BigInt(before));
  takeLine(run, { expires_in, minutes, namespace_id, purchased_in }, more * MINUTE);
  finish(run, turn);
}

/** Of what was decided before another run gave to this namespace nothing is given any more. */
function giveOnce(
  given: Money["given"],
  { asOf }: CreditRun,
  { namespace_id }: Body<"pack">,
  turn: Turn,
): void {
  const newest = given.get(namespace_id) ?? -1n;
  const detail = `entry ${newest} is a run's pack of ${namespace_id}, and this one is as of ${asOf}`;
  turn.expect(newest < asOf, "credit-run-line", detail);
}

function takeLine(run: CreditRun, line: Json, amount: bigint): void {
  run.written += 1n;
  run.sum += amount;
  run.digest?.update(encodeUtf8(`${canonical(line)}\n`));
}

/** With the last line all of them are held to what was approved. */
function finish(run: CreditRun, turn: Turn): void {
  const { digest, sum, written } = run;
  const { lines, lines_sha256, total } = run.body;
  turn.expect(written <= BigInt(lines), "credit-run-line", `line ${written} of ${lines}`);
  if (written !== BigInt(lines) || digest === undefined) return;
  run.digest = undefined;
  const same = encodeBase64(digest.digest()) === lines_sha256;
  turn.expect(same, "credit-run", "its lines have another digest");
  turn.expect(writeMicro(sum) === total, "credit-run", `its lines sum up to ${writeMicro(sum)}`);
}

function isWritten({ body, written }: CreditRun): boolean {
  return written === BigInt(body.lines);
}

/** Runs that the log ends within. */
export function missLines(runs: Map<bigint, CreditRun>, open: Findings<OpenCode>): void {
  for (const [index, run] of runs) {
    const detail = `${run.written} of ${run.body.lines} lines are there`;
    if (!isWritten(run)) open.add("credit-run-unfinished", { index }, detail);
  }
}
