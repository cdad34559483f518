/** The arithmetic of a namespace's quota as it was answered, line by line, each with its exact figure. */
import type { Amount } from "./amount.ts";
import type { QuotaPack } from "./draws.ts";
import type { NamespaceQuota, RunningJob, Slip } from "./show.ts";

export interface QuotaLine {
  /** With the sign that it has in the sum; `=` for what comes out, nothing for what is only told. */
  name: string;
  /** Absent of a line that has no figure. */
  amount?: Amount;
  /** What the figure is made of; entries are named by index. */
  from: string;
}

/** In the order in which it is calculated. */
export function explainQuota(quota: NamespaceQuota): QuotaLine[] {
  const { jobs, live, month, packs, projected, remaining, used } = quota;
  return [
    limitLine(quota),
    ...packs.flatMap((pack) => packLines(pack, quota)),
    {
      name: "- used",
      amount: used,
      from: `billable usage and adjustments of ${month} that were posted to it`,
    },
    { name: "= available", amount: quota.available, from: "before what runs now" },
    ...jobs.map(jobLine),
    { name: "- live", amount: live, from: `${jobs.length} running jobs together` },
    { name: "= remaining", amount: remaining, from: "available - live" },
    ...boundLines(quota),
    ...(quota.slip === undefined ? [] : slipLines(quota.slip)),
    ...(projected === undefined
      ? []
      : [
          {
            name: "  projected",
            amount: projected,
            from: `(used + live) x ${projected.month_ms} ms of the month / ${projected.elapsed_ms} ms of it so far`,
          },
        ]),
  ];
}

function limitLine({ limit, beyond, unlimited }: NamespaceQuota): QuotaLine {
  if (limit === undefined) {
    return {
      name: "+ limit",
      from: `no entry sets one: ${unlimited ? "unlimited" : "packs only"}`,
    };
  }
  const { index, effective_from, monthly_minutes, cap_minutes, grace_minutes } = limit;
  const capped = cap_minutes === undefined ? "no cap" : `cap ${cap_minutes} minutes`;
  const then = beyond === "bill" ? `bill, ${capped}` : `stop, grace ${grace_minutes} minutes`;
  const from = `entry ${index}: ${monthly_minutes} minutes a month since ${effective_from}; beyond: ${then}`;
  return { name: "+ limit", amount: limit.amount, from: unlimited ? `${from}; unlimited` : from };
}

/** The months tell how the pack came to what it is; the sum has what it held when the month began. */
function packLines(pack: QuotaPack, { earlier, month }: NamespaceQuota): QuotaLine[] {
  const { index, source, pack_id, minutes, expires_in, undrawn, draws, left } = pack;
  const whole = `entry ${index}: ${minutes} minutes from ${source}, through ${expires_in}`;
  return [
    { name: `+ pack ${pack_id}`, amount: undrawn, from: `${whole}; when the month began` },
    ...draws.map(({ month: drawnIn, ...amount }) => {
      const then = earlier.find((each) => each.month === drawnIn);
      const why =
        then === undefined
          ? `used - limit of ${month}, as far as this pack goes`
          : `of ${then.over.compute_minutes} over: used ${then.used.compute_minutes}, limit ${then.limit_minutes}${then.limit === undefined ? "" : ` by entry ${then.limit}`}`;
      return { name: `    drawn for ${drawnIn}`, amount, from: why };
    }),
    { name: "    left", amount: left, from: "for this month and later ones" },
  ];
}

function jobLine({ job_id, state, elapsed_ms, factor, heard_at, ...job }: RunningJob): QuotaLine {
  const { compute_ms, compute_minutes } = job;
  return {
    name: `    job ${job_id}`,
    amount: { compute_ms, compute_minutes },
    from: `${elapsed_ms} ms x ${factor}, ${state}, heard at ${heard_at}`,
  };
}

function boundLines({
  start_bound,
  run_bound,
  reserved,
  reservations,
}: NamespaceQuota): QuotaLine[] {
  const held = reservations.map(({ job_id, until, compute_ms, compute_minutes }) => ({
    name: `    start of job ${job_id}`,
    amount: { compute_ms, compute_minutes },
    from: `let through, not heard of yet; held until ${until}`,
  }));
  return [
    ...held,
    { name: "  reserved", amount: reserved, from: "held for starts beyond what is live" },
    start_bound === undefined
      ? { name: "  start", from: "always" }
      : { name: "  start", amount: start_bound, from: "while live + reserved of others is below" },
    run_bound === undefined
      ? { name: "  stop", from: "never" }
      : { name: "  stop", amount: run_bound, from: "when live is above" },
  ];
}

function slipLines({ starts, reserve, tolerance, beyond, ...pace }: Slip): QuotaLine[] {
  const at = `each holds ${reserve.compute_minutes} at factor 1`;
  const through = starts === undefined ? "any number: nothing is held for a start" : starts;
  const unheard = `${pace.heartbeat_ms} ms to the next heartbeat and ${pace.round_ms} ms to the end`;
  return [
    { name: "  starts at once", from: `at most ${through}; ${at}` },
    { name: "  tolerance", amount: tolerance, from: "grace of stop, cap of bill" },
    {
      name: "  beyond at most",
      amount: beyond,
      from: `tolerance + of each running job its factor x (${unheard})`,
    },
  ];
}
