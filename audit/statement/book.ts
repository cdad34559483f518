/**
 * The statement of a month from a log's entries alone, by an implementation of its own: what the service
 * served must be this text, to the byte (docs/months.md).
 */
import { sha256 } from "@noble/hashes/sha2.js";
import type { Body, Entry, EntryOf } from "../../src/core/entry.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { Report, TYP } from "../../src/core/report.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { Findings } from "../finding.ts";
import { Ledger } from "../money/ledger.ts";
import { figuresOf } from "../money/state.ts";
import { payerOf, rollup } from "../month/closing.ts";
import { Terms } from "../month/terms.ts";
import { Telling } from "../month/told.ts";
import type { Closing } from "../prefix/state.ts";
import { readStatement } from "../prefix/statement.ts";
import { monthAfter } from "../rating.ts";
import { chargeOf } from "../tally/charge.ts";
import type { OpenPiles } from "../tally/piles.ts";
import { micro, writeMicro } from "../tally/record.ts";
import { Evidence, type Preconditions } from "./evidence.ts";
import { type Amounts, amountsOf, Corrections, LineSums, Sums, written } from "./sums.ts";

const PARTS = ["absorbed", "included", "not_billable", "overage", "usage"] as const;
const FIGURES = ["bought", "closing", "drawn", "expired", "opening", "refunded"] as const;

/** A cut-off, and what was seen when it was written. */
interface CutOff extends Closing {
  approval: string;
  preconditions: Preconditions;
}

type Card = Body<"rate_card"> & { index: bigint };

/** Lines of one digest. */
class Lines {
  readonly #hash = sha256.create();
  #count = 0n;

  add(line: Json): void {
    this.#hash.update(encodeUtf8(`${canonical(line)}\n`));
    this.#count += 1n;
  }

  end(): { lines: string; sha256: string } {
    return { lines: String(this.#count), sha256: encodeBase64(this.#hash.digest()) };
  }
}

export class StatementBook {
  readonly #month: string;
  readonly #ledger: Ledger;
  readonly #evidence: Evidence;
  readonly #corrections: Corrections;
  readonly #closings: CutOff[] = [];
  readonly #cards: Card[] = [];
  readonly #told = new Telling();
  readonly #machines = new Sums();
  readonly #late = new Sums();
  /** Of corrections that name a usage: its index, and what was added to it. */
  readonly adjusted = new Map<bigint, bigint>();
  #genesis: Body<"log"> | undefined;
  #closed: EntryOf<"month_closed"> | undefined;

  constructor(month: string, openPiles: OpenPiles) {
    this.#month = month;
    this.#ledger = new Ledger(openPiles);
    this.#evidence = new Evidence(month);
    this.#corrections = new Corrections(month);
  }

  /** What comes after the month's own `month_closed` says nothing of it. */
  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  take(entry: Entry): void {
    if (this.isClosed) return;
    const { index } = entry;
    this.#evidence.take(entry);
    this.#told.take(entry);
    switch (entry.kind) {
      case "log":
        this.#genesis = entry.body;
        break;
      case "usage":
        this.#use(entry);
        break;
      case "adjustment":
        this.#adjust(entry);
        break;
      case "rate_card":
        this.#cards.push({ ...entry.body, index });
        break;
      case "pack":
        this.#ledger.mention(BigInt(entry.body.namespace_id));
        break;
      case "month_closing":
        this.#cutOff(entry);
        break;
      case "month_closing_withdrawn":
        this.#closings.pop();
        break;
      case "month_closed":
        if (entry.body.month === this.#month) this.#closed = entry;
        break;
      default:
    }
  }

  /** The machine type of a usage that corrections name. */
  correct(index: bigint, { machine_type }: Body<"usage">): void {
    const adjustment = this.adjusted.get(index) ?? 0n;
    this.#machines.add(`hosted\n${machine_type}`, { adjustment });
  }

  /** What `month_closed` says that the statement's SHA-256 is. */
  get signed(): string | undefined {
    return this.#closed?.body.statement_sha256;
  }

  /** Undefined: the month is not closed. */
  statement(): string | undefined {
    const closed = this.#closed;
    const cutOff = this.#closings.find(({ month }) => month === this.#month);
    const genesis = this.#genesis;
    if (closed === undefined || cutOff === undefined || genesis === undefined) return undefined;
    const before = this.#closings.findLast(({ index }) => index < cutOff.index);
    const counted = this.#count(cutOff);
    const { body } = closed;
    return canonical({
      ...counted,
      anchor: { by: body.anchored_by, kind: body.anchor },
      cards: this.#cardsInForce(cutOff.index),
      checkpoint: { root: body.root, size: body.size },
      close_delay_days: body.close_delay_days,
      closed: { at: closed.at, index: String(closed.index) },
      closing: { approval: cutOff.approval, at: cutOff.at, index: String(cutOff.index) },
      corrections: this.#corrections.all(),
      exports: body.exports,
      instance: { platform: genesis.platform, unique_id: genesis.unique_id },
      log: closed.log,
      month: this.#month,
      preconditions: [
        ...cutOff.preconditions,
        { code: "accounts", evidence: { namespaces: counted.accounts.lines } },
      ],
      range: { from: String(before?.index ?? 0n), to: String(cutOff.index) },
      v: "1",
    });
  }

  #use(entry: EntryOf<"usage">): void {
    const { body } = entry;
    const read = readStatement(body.jws, TYP.report, Report);
    if (typeof read === "string") return;
    const { billing_month, machine_type, tracking, usage_month } = body;
    const charge = chargeOf(entry, read.payload, {});
    this.#ledger.charge(charge);
    const amounts = amountsOf(charge);
    if (billing_month !== this.#month) return;
    this.#machines.add(`${tracking}\n${machine_type}`, amounts);
    if (usage_month < this.#month) this.#late.add(usage_month, amounts);
  }

  #adjust(adjustment: EntryOf<"adjustment">): void {
    this.#corrections.take(adjustment.body);
    for (const [line, figure] of figuresOf(adjustment).entries()) {
      const { amount, billing_month, entry, usage_month } = figure;
      this.#ledger.adjust(figure, line);
      if (billing_month !== this.#month) continue;
      if (usage_month < this.#month) this.#late.add(usage_month, { adjustment: amount });
      if (entry === "") this.#machines.add("hosted\n", { adjustment: amount });
      else this.adjusted.set(BigInt(entry), (this.adjusted.get(BigInt(entry)) ?? 0n) + amount);
    }
  }

  #cutOff({ at, body, index }: EntryOf<"month_closing">): void {
    const before = this.#closings.at(-1)?.month ?? "";
    const isOurs = body.month === this.#month;
    const preconditions = isOurs ? this.#evidence.seen(at, before) : [];
    const { approval, month } = body;
    this.#closings.push({ index, at, month, closed: true, approval, preconditions });
  }

  #cardsInForce(cut: bigint) {
    const [start, end] = [
      `${this.#month}T00:00:00.000Z`,
      `${monthAfter(this.#month)}T00:00:00.000Z`,
    ];
    const cards = this.#cards.filter(({ index }) => index < cut);
    return (["hosted", "self_managed"] as const).flatMap((tracking) => {
      const own = cards.filter((card) => card.tracking === tracking);
      // One is in force in the month if, from its beginning or the month's on, no newer one stands yet.
      return own
        .filter((card, at) => {
          const newer = own.slice(at + 1).map((next) => next.effective_from);
          const { effective_from: from } = card;
          return from < end && !newer.some((next) => next <= from || next <= start);
        })
        .map(({ effective_from, index, source }) => {
          return { effective_from, index: String(index), source, tracking };
        });
    });
  }

  #count(cutOff: CutOff) {
    const lines = {
      accounts: new Lines(),
      allocations: new Lines(),
      packs: new Lines(),
      rollups: new Lines(),
    };
    const parts = new LineSums(PARTS);
    const figures = new LineSums(FIGURES);
    let drawn = 0n;
    const terms = new Terms(this.#told);
    const closings = this.#closings.filter(({ month }) => month <= cutOff.month);
    for (const [namespace_id, postings] of this.#ledger.namespaces(new Findings())) {
      const share = [...terms.months(namespace_id, postings, closings)].at(-1);
      for (const posting of share?.postings ?? []) lines.rollups.add(rollup(namespace_id, posting));
      for (const line of share?.allocations ?? []) {
        lines.allocations.add({ ...line, namespace_id });
        parts.add(line);
        drawn += line.packs.reduce((sum, pack) => sum + micro(pack.drawn), 0n);
      }
      for (const line of share?.packs ?? []) {
        lines.packs.add({ ...line, namespace_id });
        figures.add(line);
      }
      const account = share && payerOf(namespace_id, share);
      if (account !== undefined) lines.accounts.add(account);
    }
    const usage = this.#machines.all().map(([key, sums]) => {
      const [tracking = "", machine_type = ""] = key.split("\n");
      return { sums, line: { ...written(sums), machine_type, tracking } };
    });
    const totals = new Sums();
    totals.add("", {});
    for (const { sums } of usage) totals.add("", sums);
    return {
      accounts: lines.accounts.end(),
      allocations: { ...lines.allocations.end(), ...parts.all(), packs: writeMicro(drawn) },
      late: this.#late.all().map(([usage_month, sums]) => ({ ...written(sums), usage_month })),
      packs: { ...lines.packs.end(), ...figures.all() },
      rollups_sha256: lines.rollups.end().sha256,
      totals: written(totals.all()[0]?.[1] as Amounts),
      usage: usage.map(({ line }) => line),
    };
  }
}
