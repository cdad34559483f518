/** Which entries an approval lets in, each once, and which need none. */
import type { Body, Kind } from "../../src/core/entry.ts";
import { isOfRun } from "../money/credit-run.ts";
import type { Turn } from "../prefix/rule.ts";
import type { State } from "../prefix/state.ts";
import { isAsked } from "./content.ts";
import type { Approval, Decided } from "./decided.ts";

/** Asked of every entry before its own rule: what stood before it decides. */
export function judgeApproval(state: State, kind: Kind, body: Body<Kind>, turn: Turn): void {
  if (kind === "enrolment" && "runners" in body) enrolled(state, body, turn);
  if ("approval" in body) approved(state, kind, body, turn);
}

/** Asked of every entry after its own rule: an approval and what it lets in stand side by side. */
export function missUse({ decided }: State, turn: Turn): void {
  const { awaiting } = decided;
  if (awaiting === undefined || awaiting === turn.index) return;
  decided.awaiting = undefined;
  const used = decided.approvals.get(awaiting)?.used === true;
  turn.expect(used, "approval-unused", `behind the approval of entry ${awaiting}`);
}

function approved(
  state: State,
  kind: Kind,
  body: Extract<Body<Kind>, { approval: string }>,
  turn: Turn,
): void {
  const { decided } = state;
  const { approval } = body;
  // The approval of a run, to which its lines are held.
  if ("credit_run" in body ? body.credit_run !== "" : "pack_id" in body && isOfRun(body)) return;
  if (approval === "") {
    const free = state.control === "single" || needsNone(state, kind, body);
    turn.expect(free, "approval-required", "it names none");
    return;
  }
  turn.expect(state.control === "dual", "approval-needless", `it names entry ${approval}`);
  const given = decided.approvals.get(BigInt(approval));
  if (given === undefined) turn.expect(false, "approval-unknown", `entry ${approval} is none`);
  else use(decided, given, { kind, body, approval }, turn);
}

function use(
  decided: Decided,
  given: Approval,
  { approval, body, kind }: { approval: string; body: Body<Kind>; kind: Kind },
  turn: Turn,
): void {
  turn.expect(!given.used, "approval-used", `entry ${approval} has let in another`);
  given.used = true;
  const { asks } = given;
  if (asks === undefined) return; // it approved nothing, which was said of it, or all was said of it
  const behind = BigInt(approval) === turn.index - 1n;
  turn.expect(behind, "approval-unused", `it stands away from its approval, entry ${approval}`);
  const same = asks.action === kind && isAsked(asks.content, body, turn.at);
  turn.expect(same, "approval-content", `proposal ${given.proposal} asks for something else`);
  const by = "by" in body ? body.by : "";
  turn.expect(by === asks.by, "approval-content", `by ${by}, and proposed by ${asks.by}`);
  const { action, reason, ticket } = asks;
  const said = { action, outcome: "approved" as const, proposal: given.proposal, reason, ticket };
  decided.decision({
    ...said,
    ...{ index: turn.index, at: turn.at, proposer: asks.by, decider: given.by },
  });
  given.asks = undefined;
}

/** An enrolment has no member for its approval: it stands right behind it. */
function enrolled(state: State, body: Body<"enrolment">, turn: Turn): void {
  const { decided } = state;
  const before = turn.index - 1n;
  const given = decided.approvals.get(before);
  if (given !== undefined && given.asks?.action === "enrolment") {
    use(decided, given, { kind: "enrolment", body, approval: String(before) }, turn);
    return;
  }
  const needed = state.control === "dual" && body.runners.some((line) => costs(state, line));
  turn.expect(!needed, "approval-required", "no approval stands before it");
}

/**
 * The vendor's runners are billed, and what a machine is decides at which rate. On instances that the
 * vendor runs, whoever calls an instance runner their own takes it off the bill.
 */
function costs(
  { log, runners }: State,
  { machine_type, runner_type, tracking, uuid }: Body<"enrolment">["runners"][number],
): boolean {
  if (tracking === "hosted") return true;
  if (runner_type === "instance" && log.platform !== "self_managed") return true;
  const known = runners.get(uuid)?.at(-1);
  return known !== undefined && known.machine_type !== machine_type;
}

/** What systems do by themselves, that nobody decided, and that begins before anybody could approve. */
function needsNone({ decided, sources }: State, kind: Kind, body: Body<Kind>): boolean {
  switch (kind) {
    case "quota":
    case "pack":
    case "project_class":
    case "account":
      return "source" in body && sources.has(body.source);
    case "break_resolved":
      return "outcome" in body && body.outcome === "healed";
    case "role_mapping":
      return decided.grants === undefined;
    default:
      return false;
  }
}
