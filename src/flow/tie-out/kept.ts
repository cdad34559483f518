/** Legs of a month that is closed: its entry, and what the service keeps of it. */
import { formatSignedComputeMs, parseSignedComputeMs } from "../../core/charge.ts";
import type { Body } from "../../core/entry.ts";
import { parseCanonical } from "../../core/json.ts";
import { LineDigest } from "../../core/month/lines.ts";
import { Statement } from "../../core/month/statement.ts";
import { encodeUtf8 } from "../../core/text.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import {
  type AllocationRow,
  type MonthEnd,
  type PackRollRow,
  readAllocations,
  readPackRolls,
  readStatement,
} from "../../store/month-ends.ts";
import { countAccounts } from "../month/count.ts";
import { decodedAs } from "../usage/show.ts";
import { figuresFrom } from "./counted.ts";
import type { Figures, Leg } from "./leg.ts";

interface OfMonth {
  log: string;
  month: string;
}

export async function closedLeg(tx: Transaction, log: string, { index }: MonthEnd): Promise<Leg> {
  const { body } = decodedAs("month_closed", (await readEntry(tx, log, index)).bytes);
  const { accounts_sha256, allocations_sha256, packs_sha256, rollups_sha256 } = body;
  const digests = { accounts_sha256, allocations_sha256, packs_sha256, rollups_sha256 };
  return { leg: "month_closed", figures: { ...saidIn(body), ...digests } };
}

/** Undefined: it is not written yet. */
export async function statementLeg(
  tx: Transaction,
  { log, month }: OfMonth,
): Promise<Leg | undefined> {
  const text = await readStatement(tx, log, month);
  if (text === undefined) return undefined;
  const said = Statement.safeParse(parseCanonical(encodeUtf8(text))).data;
  // It stands for nothing that it would have to say.
  if (said === undefined) return { leg: "statement", figures: { rollups_sha256: "unreadable" } };
  const { accounts, allocations, packs, rollups_sha256 } = said;
  return {
    leg: "statement",
    figures: {
      ...saidIn(said),
      ...partsOf({ ...allocations, drawn: allocations.packs }),
      ...rollOf(packs),
      rollups_sha256,
      accounts_sha256: accounts.sha256,
      allocations_sha256: allocations.sha256,
      packs_sha256: packs.sha256,
    },
  };
}

/** Totals and files, which `month_closed` and the statement both name. */
function saidIn({ exports, totals }: Pick<Body<"month_closed">, "exports" | "totals">): Figures {
  const files = exports.flatMap(({ name, rows, sha256 }) => [
    [`${name}.rows`, rows],
    [`${name}.sha256`, sha256],
  ]);
  const { adjustment_compute_ms, billable_compute_ms, compute_ms, duration_ms, jobs } = totals;
  const sums = {
    jobs: BigInt(jobs),
    duration_ms: BigInt(duration_ms),
    compute_ms: parseSignedComputeMs(compute_ms),
    billable_compute_ms: parseSignedComputeMs(billable_compute_ms),
    adjustment: parseSignedComputeMs(adjustment_compute_ms),
  };
  return { ...figuresFrom(sums), ...Object.fromEntries(files) };
}

const PAGE = 1_000;
const PARTS = ["usage", "included", "drawn", "overage", "absorbed", "not_billable"] as const;
const ROLL = ["opening", "bought", "drawn", "expired", "refunded", "closing"] as const;

/** The rows as they are kept, with the digest that `month_closed` has of them. */
export async function allocationsLeg(tx: Transaction, of: OfMonth): Promise<Leg> {
  const [digest, sums] = [new LineDigest(), new Sums(PARTS)];
  const page = (after: AllocationRow | undefined) => {
    const place = after && { namespace: after.namespace_id, usageMonth: after.usage_month };
    return readAllocations(tx, of, { after: place, limit: PAGE });
  };
  for await (const row of pagewise(page)) {
    const { drawn: _, packs, ...line } = row;
    digest.add({ ...line, packs: parseCanonical(encodeUtf8(packs)) ?? packs });
    sums.add(row);
  }
  const figures = { ...partsOf(sums.texts()), allocations_sha256: digest.end() };
  return { leg: "allocations", figures };
}

export async function packRollsLeg(tx: Transaction, of: OfMonth): Promise<Leg> {
  const [digest, sums] = [new LineDigest(), new Sums(ROLL)];
  const page = (after: PackRollRow | undefined) => {
    const place = after && { namespace: after.namespace_id, pack: after.pack };
    return readPackRolls(tx, of, { after: place, limit: PAGE });
  };
  for await (const row of pagewise(page)) {
    digest.add({ ...row });
    sums.add(row);
  }
  return { leg: "pack_rolls", figures: { ...rollOf(sums.texts()), packs_sha256: digest.end() } };
}

/** Who pays, as it is kept. */
export async function accountsLeg(
  tx: Transaction,
  of: OfMonth,
  { closing }: MonthEnd,
): Promise<Leg> {
  const { sha256 } = await countAccounts({ tx, ...of, closing });
  return { leg: "accounts", figures: { accounts_sha256: sha256 } };
}

async function* pagewise<Row>(page: (after: Row | undefined) => Promise<Row[]>) {
  for (let last: Row | undefined; ; ) {
    const rows = await page(last);
    yield* rows;
    last = rows.at(-1);
    if (rows.length < PAGE) return;
  }
}

/** Of columns of amounts with six decimals. */
class Sums<Name extends string> {
  readonly #names: readonly Name[];
  readonly #sums = new Map<Name, bigint>();

  constructor(names: readonly Name[]) {
    this.#names = names;
  }

  add(row: Readonly<Record<Name, string>>): void {
    for (const name of this.#names) {
      this.#sums.set(name, (this.#sums.get(name) ?? 0n) + parseSignedComputeMs(row[name]));
    }
  }

  texts(): Record<Name, string> {
    const sums = this.#names.map((name) => [
      name,
      formatSignedComputeMs(this.#sums.get(name) ?? 0n),
    ]);
    return Object.fromEntries(sums);
  }
}

export function partsOf(parts: Readonly<Record<(typeof PARTS)[number], string>>): Figures {
  return {
    net_compute_ms: parts.usage,
    not_billable_compute_ms: parts.not_billable,
    included_compute_ms: parts.included,
    pack_compute_ms: parts.drawn,
    overage_compute_ms: parts.overage,
    absorbed_compute_ms: parts.absorbed,
  };
}

export function rollOf(roll: Readonly<Record<(typeof ROLL)[number], string>>): Figures {
  return Object.fromEntries(ROLL.map((name) => [`packs_${name}_compute_ms`, roll[name]]));
}
