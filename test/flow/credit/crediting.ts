/** Logs with much usage, and credit runs over it: for tests of what takes it back. */
import type { AdjustmentLine } from "../../../src/core/control.ts";
import { canonical } from "../../../src/core/json.ts";
import { compact, headerSegment } from "../../../src/core/jws.ts";
import { fact, TYP } from "../../../src/core/report.ts";
import { encodeUtf8 } from "../../../src/core/text.ts";
import { applyRun } from "../../../src/flow/credit/apply.ts";
import { askReversal, askRun, type Crediting } from "../../../src/flow/credit/ask.ts";
import { type NewCreditPreview, preview } from "../../../src/flow/credit/preview.ts";
import { assertHandMade } from "../../../src/flow/money/adjust.ts";
import { openLedger } from "../../../src/flow/quota/ledger.ts";
import { Seen } from "../../../src/flow/quota/seen.ts";
import { openLive } from "../../../src/flow/quota/standing.ts";
import type { Sql } from "../../../src/store/connect.ts";
import type { CreditPreview } from "../../../src/store/credit-previews.ts";
import { openLiveProcess } from "../../../src/store/live-process.ts";
import { kidOf, report as reportOf } from "../../core/history.ts";
import { testKey } from "../../signing.ts";
import { type Door, sha256 } from "../door.ts";

export interface Worked {
  namespace: number;
  project?: number;
  finished: string;
  duration?: bigint;
  reason?: string;
  uuid?: string;
}

/** A second machine, a large one. */
export const OTHER = "0a1b2c3d-8f6d-4b6b-9d5b-0a1b2c3d4e5f";
export const SEPTEMBER = "2026-09-20T12:00:00.000Z";
export const OCTOBER = "2026-10-20T12:00:00.000Z";

/** A line of a namespace's month as a whole. */
export const month = (amount: string, namespace_id: string, usage_month = "2026-10-01") => ({
  ...{ amount, entry: "", namespace_id, project_id: "", reverses: "", usage_month },
});

export const SOME: readonly Worked[] = [
  { namespace: 1, finished: SEPTEMBER },
  { namespace: 1, finished: OCTOBER, duration: 120_000n },
  { namespace: 2, finished: OCTOBER, project: 60 },
  { namespace: 2, finished: "2026-10-20T12:00:00.001Z", reason: "script_failure" },
  { namespace: 3, finished: OCTOBER, uuid: OTHER },
  { namespace: 3, finished: OCTOBER, reason: "runner_system_failure" },
  { namespace: 10, finished: OCTOBER, reason: "script_failure", duration: 90_500n },
];

/** As if all had been reported and verified: builds of the key of this seed, through the appender. */
export async function work(
  door: Pick<Door, "appender">,
  { log, seed, first = 1 }: { log: string; seed: number; first?: number },
  builds: readonly Worked[],
): Promise<void> {
  const header = headerSegment(kidOf(seed), TYP.report);
  const verdicts = builds.map((build, i) => {
    const n = String(first + i);
    const { duration = 60_000n, finished, namespace, project = 50, reason = "", uuid } = build;
    const started_at = new Date(Date.parse(finished) - Number(duration)).toISOString();
    const report = reportOf({
      counter: n,
      log,
      job: { id: n, project_id: String(project), root_namespace_id: String(namespace) },
      usage: {
        ...{ duration_ms: String(duration), failure_reason: reason, finished_at: finished },
        started_at,
      },
      ...(uuid !== undefined && { uuid }),
    });
    const jws = compact(header, canonical(report), testKey(seed).sign);
    const digest = sha256(encodeUtf8(jws));
    return {
      kind: "signed",
      jws,
      kid: kidOf(seed),
      digest,
      report,
      fact: fact(report, sha256),
    } as const;
  });
  for (let from = 0; from < verdicts.length; from += 500) {
    const outcomes = await door.appender.reports(log, verdicts.slice(from, from + 500));
    const refused = outcomes.find(({ code }) => code !== "accepted");
    if (refused !== undefined) throw new Error(`a build is ${refused.code}`);
  }
}

/** All that asks for runs takes, on one database. */
export function creditingOf(door: Door, sql: Sql): Crediting & { close(): Promise<void> } {
  const clock = { now: () => door.now };
  const failed = (): void => undefined;
  const ledger = openLedger({ sql, clock, failed, pollMs: 3_600_000 });
  const live = openLive({ process: openLiveProcess(), clock, failed });
  const quota = { ledger, live, clock, seen: new Seen() };
  const { appender, keyring, random } = door;
  const parts = { appender, keyring, random, quota, sql, clock, closeDelayDays: 3n, issuers: [] };
  return { ...parts, close: () => ledger.close() };
}

export const SALT = Buffer.alloc(16).toString("base64");
const CAUSE = { reason: "outage", ticket: "INC-7", expires_in_s: 3_600 };
const PERSON = { by: "p_finance", person: { issuer: "https://id.test", subject: "u-1" } };

/** By hand, where one person decides. */
export async function adjust(
  door: Pick<Door, "appender">,
  log: string,
  lines: readonly AdjustmentLine[],
): Promise<bigint> {
  const cause = { approval: "", by: "p_finance", reason: "goodwill", salt: SALT, ticket: "T-1" };
  const { index } = await door.appender.control(log, "adjustment", async (prefix, at, tx) => {
    const billing_month = prefix.postingMonth(lines[0]?.usage_month ?? "");
    const own = { billing_month, credit_run: "", first_line: "0", lines: [...lines] };
    const body = { ...cause, ...own };
    await assertHandMade({ tx, prefix, at }, body);
    return body;
  });
  return index;
}

/** Previewed and written, where one person decides: its index. */
export async function begin(
  crediting: Crediting,
  log: string,
  asked: NewCreditPreview | CreditPreview,
): Promise<bigint> {
  const { id } = "id" in asked ? asked : await preview(crediting, log, asked);
  const { index } = await askRun(crediting, { log, ...PERSON }, { preview: id, ...CAUSE });
  return index;
}

export async function beginReversal(
  crediting: Crediting,
  log: string,
  run: bigint,
): Promise<bigint> {
  return (await askReversal(crediting, { log, ...PERSON }, run, CAUSE)).index;
}

export async function whole(crediting: Crediting, log: string, index: bigint): Promise<void> {
  await applyRun(crediting, { log, index }, () => true);
}

/** A run that is written and applied: its index. */
export async function run(
  crediting: Crediting,
  log: string,
  asked: NewCreditPreview,
): Promise<bigint> {
  const index = await begin(crediting, log, asked);
  await whole(crediting, log, index);
  return index;
}
