/** `minutebook what-if`: what another card would have charged in months that are past. */
import type { Command } from "commander";
import {
  formatSignedComputeMs,
  parseSignedComputeMs,
  signedComputeMinutes,
} from "../core/charge.ts";
import { adjustmentsFor, type Difference, Differences } from "../core/what-if.ts";
import { ProposedCard, type WhatIfPart } from "../flow/money/what-if.ts";
import { type Api, ApiError, call } from "./api.ts";
import { CommandError } from "./failure.ts";
import {
  apiOf,
  example,
  month,
  readJsonFile,
  type ServerOptions,
  serverCommand,
} from "./option.ts";
import { print, table } from "./print.ts";
import { showProgress } from "./progress.ts";

interface WhatIfOptions extends ServerOptions {
  log: string;
  from: string;
  to: string;
  propose?: true;
  reason?: string;
  ticket?: string;
}

const SHAPE = `
The file: {"tracking": "hosted", "runner_factors": {"small": "1"}, "project_factors": {}, "not_billable": []}
With --propose each difference becomes a line of an adjustment, up to 128 in one proposal; what is above
what was charged is asked for like what is below it. Again it would be asked for again.
`;

export function whatIfCommand(): Command {
  return serverCommand("what-if", "what another card would have charged in past months")
    .argument("<card>", "file with a rate card, in JSON")
    .requiredOption("--log <id>", "the log")
    .requiredOption("--from <month>", "the first usage month", month)
    .requiredOption("--to <month>", "the usage month after the last", month)
    .option("--propose", "ask for adjustments of all differences")
    .option("--reason <code>", "of those: of the operator's own list")
    .option("--ticket <text>", "of those: where the case is written down")
    .addHelpText(
      "after",
      SHAPE + example("what-if card.json --log 0a1b… --from 2026-09 --to 2026-11"),
    )
    .action(async (file: string, options: WhatIfOptions) => {
      const card = readJsonFile(file, ProposedCard);
      const cause = causeOf(options, card.tracking);
      const api = apiOf(options);
      const answer = await differences(api, options, card);
      const proposals = cause === undefined ? [] : await propose(api, options.log, answer, cause);
      const { as_of, rows } = answer;
      const said = proposals.map(({ index, code, lines }) => {
        return code === undefined
          ? `Asked for as entry ${index}: ${lines} lines.`
          : `Refused (${code}): ${lines} lines.`;
      });
      const document = { as_of, rows: rows.map(shown), total: shown(totalOf(rows)), proposals };
      print(options, document, [...tableOf(rows), ...said]);
    });
}

interface Cause {
  reason: string;
  ticket: string;
}

function causeOf({ propose, reason, ticket }: WhatIfOptions, tracking: string): Cause | undefined {
  if (!propose) return undefined;
  if (reason === undefined || ticket === undefined) {
    throw new CommandError("invalid-usage", "--propose takes --reason and --ticket");
  }
  if (tracking !== "hosted") throw new CommandError("invalid-usage", "only hosted usage is billed");
  return { reason, ticket };
}

interface Answer {
  as_of: string;
  rows: Difference[];
  postingMonths: Map<string, string>;
}

/** Part by part, all as of the size that the first had. */
async function differences(api: Api, options: WhatIfOptions, card: object): Promise<Answer> {
  const { from, log, to } = options;
  const sums = new Differences();
  const postingMonths = new Map<string, string>();
  const progress = showProgress("entries");
  let place: { as_of?: string; after?: string } = {};
  try {
    for (;;) {
      const asked = { card, from, to, ...place };
      const part = await call<WhatIfPart>(api, "POST", `/v1/logs/${log}/what_if`, asked);
      for (const row of part.rows) {
        sums.merge(exact(row));
        postingMonths.set(row.usage_month, row.billing_month);
      }
      const { as_of, next } = part;
      progress.update("rated again", Number(next ?? as_of), Number(as_of));
      if (next === undefined) return { as_of, rows: sums.rows(), postingMonths };
      place = { as_of, after: next };
    }
  } finally {
    progress.stop();
  }
}

function exact(row: WhatIfPart["rows"][number]): Difference {
  const { machine_type, namespace_id, usage_month } = row;
  return {
    ...{ machine_type, namespace_id, usage_month },
    jobs: BigInt(row.jobs),
    unrated: BigInt(row.unrated),
    stands: parseSignedComputeMs(row.stands),
    would: parseSignedComputeMs(row.would),
  };
}

interface Asked {
  lines: number;
  index?: string;
  /** Why it was not taken. */
  code?: string;
}

/** One that is refused does not keep the others. */
async function propose(
  api: Api,
  log: string,
  { postingMonths, rows }: Answer,
  cause: Cause,
): Promise<Asked[]> {
  const asked: Asked[] = [];
  const posting = (usageMonth: string): string => postingMonths.get(usageMonth) ?? usageMonth;
  for (const { billing_month, lines } of adjustmentsFor(rows, posting)) {
    const content = { ...cause, billing_month, credit_run: "", first_line: "0", lines };
    const body = { ...cause, log, action: "adjustment", content };
    try {
      const { index } = await call<{ index: string }>(api, "POST", "/v1/proposals", body);
      asked.push({ lines: lines.length, index });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      asked.push({ lines: lines.length, code: error.code });
    }
  }
  return asked;
}

const HEADER = [
  "month",
  "namespace",
  "machine type",
  "builds",
  "charged",
  "would be",
  "difference",
];

type Sums = Pick<Difference, "jobs" | "unrated" | "stands" | "would">;

function totalOf(rows: readonly Difference[]): Sums {
  const total = { jobs: 0n, unrated: 0n, stands: 0n, would: 0n };
  for (const { jobs, stands, unrated, would } of rows) {
    total.jobs += jobs;
    total.unrated += unrated;
    total.stands += stands;
    total.would += would;
  }
  return total;
}

/** Compute-milliseconds with six decimals, as the service answers. */
function shown<T extends Sums>({ jobs, stands, unrated, would, ...named }: T) {
  return {
    ...named,
    jobs: String(jobs),
    unrated: String(unrated),
    stands: formatSignedComputeMs(stands),
    would: formatSignedComputeMs(would),
    difference: formatSignedComputeMs(would - stands),
  };
}

function tableOf(rows: readonly Difference[]): string[] {
  const cells = rows.map(({ jobs, machine_type, namespace_id, stands, usage_month, would }) => [
    ...[usage_month, namespace_id, machine_type, String(jobs)],
    ...[stands, would, would - stands].map((sum) => signedComputeMinutes(sum)),
  ]);
  const { jobs, stands, unrated, would } = totalOf(rows);
  const [charged, other, difference] = [stands, would, would - stands].map((sum) =>
    signedComputeMinutes(sum),
  );
  const left = unrated === 0n ? [] : [`The card has no rate for ${unrated} builds.`];
  return [
    ...table(HEADER, cells),
    `${jobs} builds in all: ${charged} minutes charged, ${other} would be: a difference of ${difference}.`,
    ...left,
  ];
}
