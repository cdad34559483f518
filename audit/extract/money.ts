/** Extracts of what bills: rates, usage, corrections, months. */
import { canonical } from "../../src/core/json.ts";
import { type Extract, rowsOf } from "./extract.ts";

const rates = rowsOf(
  {
    name: "rate_cards",
    what: "Rate cards as they were entered: all up to the period's end",
    controls: ["CM-3"],
    columns: ["tracking", "effective_from", "by", "approval", "source", "says"],
    history: true,
  },
  ["rate_card"],
  ({ body: { approval, by, effective_from, source, tracking, salt: _, ...says } }) => [
    { tracking, effective_from, by, approval, source, says: canonical(says) },
  ],
);

const usage: Extract = {
  name: "usage",
  what: "Usage that was entered in the period: builds and charges by month, tracking and machine type",
  controls: ["IN-3", "IN-4", "PC-2"],
  columns: [
    ...["usage_month", "billing_month", "tracking", "machine_type", "billable"],
    ...["jobs", "compute_ms"],
  ],
  sums: ["jobs", "compute_ms"],
  open: ({ from }, put) => {
    const sums = new Map<string, { jobs: bigint; micro: bigint }>();
    return {
      take: ({ at, body, kind }) => {
        if (kind !== "usage" || at < from) return;
        const { billable, billing_month, machine_type, tracking, usage_month } = body;
        const of = { usage_month, billing_month, tracking, machine_type };
        const key = JSON.stringify({ ...of, billable: billable ? "yes" : "no" });
        const sum = sums.get(key) ?? { jobs: 0n, micro: 0n };
        sum.jobs += 1n;
        sum.micro += parseDecimal(body.compute_ms);
        sums.set(key, sum);
      },
      end: () => {
        for (const [key, { jobs, micro }] of [...sums].sort(([a], [b]) => (a < b ? -1 : 1))) {
          put({ ...JSON.parse(key), jobs: String(jobs), compute_ms: formatDecimal(micro) });
        }
      },
    };
  },
};

const adjustments = rowsOf(
  {
    name: "adjustments",
    what: "Each line of each correction: what it is about, why, and under whose approval",
    controls: ["IN-5", "IN-7"],
    columns: [
      ...["line", "namespace_id", "project_id", "usage_month", "billing_month", "amount", "entry"],
      ...["reverses", "credit_run", "by", "approval", "reason", "ticket"],
    ],
    sums: ["amount"],
  },
  ["adjustment"],
  ({ body: { lines, approval, billing_month, by, credit_run, reason, ticket } }) =>
    lines.map((line, number) => ({
      ...{ line: String(number), ...line, billing_month, credit_run, by, approval },
      ...{ reason, ticket },
    })),
);

const runs = rowsOf(
  {
    name: "credit_runs",
    what: "Credit runs: selection, total and digest of their lines, and what they take back",
    controls: ["IN-7"],
    columns: [
      ...["form", "lines", "lines_sha256", "total", "reverses", "selection"],
      ...["by", "approval", "reason", "ticket"],
    ],
    sums: ["lines", "total"],
  },
  ["credit_run"],
  ({ body: { salt: _, ...row } }) => [row],
);

const months = rowsOf(
  {
    name: "months",
    what: "Cut-offs, withdrawals and closings of months, with the digests that statements show and their anchors",
    controls: ["PC-1", "PC-2", "IT-2", "RP-2"],
    columns: ["month", "by", "approval", "closing", "size", "root", "anchor", "says"],
  },
  ["month_closing", "month_closing_withdrawn", "month_closed"],
  ({ body }) => {
    const none = { month: "", approval: "", closing: "", size: "", root: "", anchor: "" };
    const {
      month,
      by,
      approval,
      closing,
      size,
      root,
      anchor,
      salt: _,
      ...says
    } = {
      ...none,
      ...body,
    };
    return [{ month, by, approval, closing, size, root, anchor, says: canonical(says) }];
  },
);

export const MONEY = [rates, usage, adjustments, runs, months];

const PLACES = 6;

/** Decimal with up to six places, or an integer, as millionths. */
export function parseDecimal(text: string): bigint {
  const [, sign = "", whole = "0", part = ""] =
    /^(-?)([0-9]+)(?:\.([0-9]{1,6}))?$/.exec(text) ?? [];
  const micro = BigInt(whole + part.padEnd(PLACES, "0"));
  return sign === "" ? micro : -micro;
}

/** Without zeros at its end. */
export function formatDecimal(micro: bigint): string {
  const digits = String(micro < 0n ? -micro : micro).padStart(PLACES + 1, "0");
  const part = digits.slice(-PLACES).replace(/0+$/, "");
  const text = `${digits.slice(0, -PLACES)}${part === "" ? "" : `.${part}`}`;
  return micro < 0n ? `-${text}` : text;
}
