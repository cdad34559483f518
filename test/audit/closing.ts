/** Months as an honest service closes them: what must come before, and the figures, by core alone. */
import { sha256 } from "../../audit/native.ts";
import { StatementBook } from "../../audit/statement/book.ts";
import { memoryPiles } from "../../audit/tally/memory.ts";
import { breakBody } from "../../src/core/break.ts";
import { parseComputeMs, parseSignedComputeMs } from "../../src/core/charge.ts";
import { type Body, decodeEntry, type Entry, GENESIS_PREV } from "../../src/core/entry.ts";
import { parseCanonical } from "../../src/core/json.ts";
import { readCompact } from "../../src/core/jws.ts";
import { allocate } from "../../src/core/month/allocation.ts";
import { accountLine, formatSums, LineDigest, type Rollup } from "../../src/core/month/lines.ts";
import { rollForward } from "../../src/core/month/roll-forward.ts";
import { Tally, type Use } from "../../src/core/month/tally.ts";
import type { QuotaFacts } from "../../src/core/quota/quota.ts";
import { Report } from "../../src/core/report.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { EMPTY_EDGE, edgeRoot, grow } from "../../src/core/tile.ts";
import { nextMonth } from "../../src/core/unit.ts";
import { auditFiles, filesOf, said as saidOf } from "./archive.ts";
import { exportsOf, filesOfMonth, type Owed } from "./export/honest.ts";
import { type Agent, card, line, SALT, TestLog } from "./log.ts";

const BY = { approval: "", by: "finance", salt: SALT };

export function account(said: Partial<Body<"account">> = {}): Body<"account"> {
  const named = { account_id: "A-1", namespace_id: "", subscription_id: "S-1" };
  const from = { effective_from: "2026-01-01T00:00:00.000Z", source: "crm", source_version: "1" };
  return { ...BY, ...named, ...from, ...said };
}

export function coverage(month: string, runner_id: string): Body<"coverage"> {
  return {
    by: "service",
    from: `${month}T00:00:00.000Z`,
    jobs: "0",
    jobs_sha256: encodeBase64(new Uint8Array(32)),
    runner_id,
    salt: SALT,
    source: "gitlab",
    to: `${nextMonth(month)}T00:00:00.000Z`,
  };
}

/** A report that is missing, as the platform has it. */
export function difference(month: string, seed = 1): Body<"break"> {
  return {
    ...{ code: "missing-report", detail: "", difference_ms: "60000", job_id: "9", kid: "" },
    ...{ fingerprint: encodeBase64(new Uint8Array(32).fill(seed)), month },
    ...{ namespace_id: "1", runner_id: "7", salt: SALT, tracking: "hosted", usage: "" },
  };
}

/** Counters of a key that have not come. */
export function gap(month: string, kid: string, first: string, last = first): Body<"break"> {
  const of = {
    about: { first, kid },
    code: "counter-gap",
    kid,
    month,
    tracking: "hosted",
  } as const;
  return breakBody({ ...of, detail: `1 of counters ${first} to ${last} have not come` }, SALT);
}

/** Four days after the month: everybody has attested, and the platform's lists are there. */
export function ready(log: TestLog, month: string, agents: readonly Agent[], runner = "7"): void {
  log.at = `${nextMonth(month).slice(0, 8)}05T00:00:00.000Z`;
  for (const agent of agents) log.attest(agent);
  log.write("coverage", coverage(month, runner));
}

/** The cut-off: its index. */
export function pin(log: TestLog, month: string): string {
  return log.write("month_closing", { ...BY, month });
}

export function close(log: TestLog, month: string): string {
  const closing = pin(log, month);
  return log.write("month_closed", closedBody(log, closing, month));
}

/** As the next entry of the log. Its statement is the auditor's own: what that is worth shows where a service made one. */
export function closedBody(log: TestLog, closing: string, month: string): Body<"month_closed"> {
  const body = { ...figuresOf(log, closing, month), statement_sha256: "" };
  const book = new StatementBook(month, memoryPiles);
  const entries = log.entries.map(decoded);
  for (const entry of entries) book.take(entry);
  const { at, id } = log;
  const place = { at, index: BigInt(entries.length), log: id, prev: GENESIS_PREV };
  book.take({ ...place, body, kind: "month_closed" });
  for (const index of book.adjusted.keys()) {
    const usage = entries[Number(index)];
    if (usage?.kind === "usage") book.correct(index, usage.body);
  }
  const text = encodeUtf8(book.statement() ?? "");
  return { ...body, statement_sha256: encodeBase64(sha256(text)) };
}

function figuresOf(
  log: TestLog,
  closing: string,
  month: string,
): Omit<Body<"month_closed">, "statement_sha256"> {
  const size = Number(closing) + 1;
  const { edge } = grow(EMPTY_EDGE, log.leaves.slice(0, size), sha256);
  const entries = log.entries.slice(0, Number(closing)).map(decoded);
  const { accounts, owed, tally } = countedAs(entries, { index: BigInt(closing), month });
  const { allocations, packs, rollups, totals } = tally.end();
  const digests = { allocations_sha256: allocations.sha256, packs_sha256: packs.sha256 };
  return {
    ...{
      accounts_sha256: accounts.end(),
      anchor: "none",
      anchored_by: [],
      close_delay_days: "3",
      by: "service",
      closing,
      exports: exportsOf(filesOfMonth(entries, month, owed)),
      month,
      salt: SALT,
    },
    ...{ ...digests, allocations: String(allocations.lines), rollups_sha256: rollups.sha256 },
    ...{
      root: encodeBase64(edgeRoot(edge, sha256)),
      size: String(size),
      totals: formatSums(totals),
    },
  };
}

/** What a month comes to, cut off there. */
export function countedAs(entries: readonly Entry[], cut: { index: bigint; month: string }) {
  const { month } = cut;
  const facts = factsOf(entries, cut);
  const tally = new Tally(month);
  const accounts = new LineDigest();
  const owed: Owed[] = [];
  for (const namespace of facts.namespaces) {
    const own = facts.uses.filter((use) => use.namespace === namespace);
    const usages = own.filter(({ billing_month }) => billing_month === month);
    const rollups = rollupsOf(namespace, usages);
    const quota = facts.quota(namespace, own);
    const posted = postedOf(usages);
    const before = own.filter(({ billing_month }) => billing_month < month);
    const earlier = new Map(postedOf(before).map((one) => [one.usage_month, one.billable]));
    const shares = allocate({ facts: quota, month, posted, earlier });
    const rolls = rollForward(quota, month);
    tally.add({ namespace, usages, rollups, shares, rolls });
    const account = facts.account(namespace);
    owed.push({ namespace, shares, rolls, account });
    if (usages.some(({ bills }) => bills) && account)
      accounts.add(accountLine({ ...account, namespace_id: namespace }));
  }
  return { tally, accounts, owed };
}

/** One entry's part in the sums. */
type Used = Use & { namespace: string; billing_month: string; bills: boolean };

function factsOf(entries: readonly Entry[], cut: { index: bigint; month: string }) {
  const bodies = <K extends Entry["kind"]>(kind: K) =>
    entries.flatMap((entry) =>
      entry.kind === kind ? [{ ...entry, ...(entry.body as Body<K>) }] : [],
    );
  const closings: { index: bigint; month: string }[] = [];
  for (const entry of entries) {
    if (entry.kind === "month_closing")
      closings.push({ index: entry.index, month: entry.body.month });
    if (entry.kind === "month_closing_withdrawn") closings.pop();
  }
  const uses = entries.flatMap(usesOf);
  const packs = bodies("pack");
  const names = [
    ...uses.map(({ namespace }) => namespace),
    ...packs.map((pack) => pack.namespace_id),
  ];
  return {
    uses,
    namespaces: [...new Set(names)].sort((a, b) => Number(BigInt(a) - BigInt(b))),
    account: (namespace: string) =>
      [namespace, ""]
        .map((name) => bodies("account").findLast(({ namespace_id }) => namespace_id === name))
        .find((one) => one !== undefined),
    quota: (namespace: string, own: readonly Used[]): QuotaFacts => ({
      platform: "dotcom",
      closings: [...closings, cut],
      limits: bodies("quota")
        .filter(({ namespace_id }) => namespace_id === namespace)
        .map(({ cap, grace_minutes, monthly_minutes, ...limit }) => ({
          ...limit,
          cap: cap === "" ? undefined : BigInt(cap),
          grace_minutes: BigInt(grace_minutes),
          monthly_minutes: BigInt(monthly_minutes),
        })),
      packs: packs
        .filter(({ namespace_id }) => namespace_id === namespace)
        .map(({ minutes, pack_id, source, source_version, ...pack }) => ({
          ...pack,
          minutes: BigInt(minutes),
          pack: `${source}\n${pack_id}`,
          source_version: BigInt(source_version),
        })),
      used: new Map(
        postedOf(own.filter((use) => use.usage_month === use.billing_month)).map((one) => [
          one.usage_month,
          one.billable,
        ]),
      ),
    }),
  };
}

function usesOf({ body, kind }: Entry): Used[] {
  if (kind === "usage") {
    const { billing_month, compute_ms, machine_type, not_billable, tracking, usage_month } = body;
    const report = Report.parse(parseCanonical(readCompact(body.jws)?.payload ?? new Uint8Array()));
    const compute = parseComputeMs(compute_ms);
    const bills = not_billable === "";
    const sums = { jobs: 1n, duration_ms: BigInt(report.usage.duration_ms), adjustment: 0n };
    const charged = { compute_ms: compute, billable_compute_ms: bills ? compute : 0n };
    const named = { billing_month, machine_type, tracking, usage_month, bills };
    return [{ ...named, ...sums, ...charged, namespace: report.job.root_namespace_id }];
  }
  if (kind !== "adjustment") return [];
  return body.lines.map(({ amount, namespace_id: namespace, usage_month }) => ({
    ...{ billing_month: body.billing_month, usage_month, namespace, bills: false },
    ...{ machine_type: "", tracking: "hosted", adjustment: parseSignedComputeMs(amount) },
    ...{ jobs: 0n, duration_ms: 0n, compute_ms: 0n, billable_compute_ms: 0n },
  }));
}

function rollupsOf(namespace_id: string, usages: readonly Used[]): Rollup[] {
  const keys = new Set(usages.map(({ tracking, usage_month }) => `${usage_month} ${tracking}`));
  return [...keys].sort().map((key) => {
    const own = usages.filter(({ tracking, usage_month }) => key === `${usage_month} ${tracking}`);
    const sum = (
      name: "jobs" | "duration_ms" | "compute_ms" | "billable_compute_ms" | "adjustment",
    ) => own.reduce((total, use) => total + use[name], 0n);
    const { tracking = "hosted", usage_month = "" } = own[0] ?? {};
    return {
      ...{ namespace_id, tracking, usage_month, jobs: sum("jobs") },
      ...{ duration_ms: sum("duration_ms"), compute_ms: sum("compute_ms") },
      ...{ billable_compute_ms: sum("billable_compute_ms"), adjustment: sum("adjustment") },
    };
  });
}

/** By usage month, billable with adjustments. */
function postedOf(usages: readonly Used[]) {
  const months = [...new Set(usages.map(({ usage_month }) => usage_month))];
  return months.map((usage_month) => {
    const own = usages.filter((use) => use.usage_month === usage_month);
    return {
      usage_month,
      billable: own.reduce((sum, use) => sum + use.billable_compute_ms + use.adjustment, 0n),
      not_billable: own.reduce((sum, use) => sum + use.compute_ms - use.billable_compute_ms, 0n),
    };
  });
}

export function decoded(bytes: Uint8Array): Entry {
  const entry = decodeEntry(bytes);
  if (typeof entry === "string") throw new Error(`closing: ${entry}`);
  return entry;
}

/** A hosted runner, an account for all, and one of its own for namespace 2. */
export function start(): { log: TestLog; agent: Agent } {
  const log = new TestLog();
  log.write("rate_card", card());
  log.write("account", account());
  log.write("account", account({ namespace_id: "2", account_id: "A-2" }));
  return { log, agent: log.enrol(2, [line("runner-a")]) };
}

export async function codes(log: TestLog): Promise<string[]> {
  return saidOf(await auditFiles(filesOf(log))).codes;
}
