/** What rates and bounds usage: cards, classes, limits, packs. */
import type { Body } from "../../src/core/entry.ts";
import { creditPack } from "../money/credit-run.ts";
import { readFraction } from "../rating.ts";
import { type Rules, starts, type Turn } from "./rule.ts";
import { append, type State } from "./state.ts";

export const RATE_RULES = {
  rate_card: rateCard,
  project_class: projectClass,
  quota,
  pack,
} satisfies Rules;

function rateCard(state: State, body: Body<"rate_card">, turn: Turn): void {
  for (const [name, text] of Object.entries(body.runner_factors)) {
    turn.expect(readFraction(text) !== undefined, "invalid-factor", `${name}: ${text}`);
  }
  for (const [name, text] of Object.entries(body.project_factors)) {
    const valid = text === "monthly_minutes/300000" || readFraction(text) !== undefined;
    turn.expect(valid, "invalid-factor", `${name}: ${text}`);
  }
  const { cards, log } = state;
  const discounts = log.platform === "dotcom" && body.tracking === "hosted";
  const none = Object.keys(body.project_factors).length === 0;
  const detail = `${log.platform}, ${body.tracking}`;
  turn.expect(discounts || none, "project-factors-not-applicable", detail);
  starts(turn, body.effective_from, cards.get(body.tracking));
  append(cards, body.tracking, { ...body, index: turn.index });
}

function projectClass({ classes }: State, body: Body<"project_class">, turn: Turn): void {
  starts(turn, body.effective_from, classes.get(body.project_id));
  append(classes, body.project_id, body);
}

function quota({ limits }: State, body: Body<"quota">, turn: Turn): void {
  const earlier = limits.get(body.namespace_id) ?? [];
  const newest = earlier.filter((limit) => limit.source === body.source).at(-1);
  const newer = BigInt(body.source_version) > BigInt(newest?.source_version ?? -1);
  turn.expect(newer, "stale-source-version", `${body.source} ${body.source_version}`);
  turn.expect(body.cap === "" || body.beyond === "bill", "cap-without-bill", `cap ${body.cap}`);
  starts(turn, body.effective_from, earlier);
  append(limits, body.namespace_id, { ...body, index: turn.index, at: turn.at });
}

function pack(state: State, body: Body<"pack">, turn: Turn): void {
  const { expires_in, namespace_id, pack_id, purchased_in, source, source_version } = body;
  turn.expect(purchased_in <= expires_in, "pack-months", `${purchased_in} to ${expires_in}`);
  const name = JSON.stringify([source, pack_id]);
  const before = state.packs.get(name)?.at(-1) ?? { ...body, minutes: "0", source_version: -1 };
  const newer = BigInt(source_version) > BigInt(before.source_version);
  turn.expect(newer, "stale-source-version", `${source} ${source_version} of ${pack_id}`);
  const same = before.namespace_id === namespace_id && before.purchased_in === purchased_in;
  turn.expect(same, "another-pack", `${pack_id} in ${namespace_id}, bought in ${purchased_in}`);
  append(state.packs, name, { ...body, index: turn.index });
  creditPack(state, body, before.minutes, turn);
  state.money.ledger.mention(BigInt(namespace_id));
}
