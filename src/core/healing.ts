/** What ends a break though nobody decides: by the break's code, which entry can show that it is over, and of what. */
import { gapOf } from "./anomaly.ts";
import { readAttestation, readReport } from "./claim.ts";
import type { Body, Entry } from "./entry.ts";
import type { BreakCode } from "./evidence.ts";

/** In whose name the service writes what no person has done. */
export const SERVICE = "service";

type Shows = (broken: Body<"break">, shown: Entry) => boolean;

/** Usage of the job in either tracking, which stands before the break where it is what the platform differed from. */
const ofJob: Shows = ({ job_id }, { body, kind }) => {
  return kind === "usage" && readReport(body.jws)?.payload.job.id === job_id;
};

/** Whatever accounts for a counter of the gap. That all of them have come those say who see them (flow/reconcile/end.ts). */
const ofCounter: Shows = (broken, shown) => {
  const gap = gapOf(broken);
  return countersOf(broken.kid, shown).some((text) => {
    const counter = BigInt(text);
    return gap !== undefined && gap.first <= counter && counter <= gap.last;
  });
};

/** Of a key's counters those that an entry accounts for. A report for another log uses none of this one. */
function countersOf(kid: string, { body, kind }: Entry): string[] {
  if (kind === "disposition") {
    const lines = body.kid === kid ? body.lines : [];
    return lines.flatMap(({ code, counter }) => (code === "wrong-log" ? [] : [counter]));
  }
  const isSigned = kind === "usage" || kind === "hold" || kind === "conflict";
  const said = isSigned ? readReport(body.jws) : undefined;
  return said?.signer === kid ? [said.payload.counter] : [];
}

const ofKey: Shows = ({ code, kid }, { body, kind }) => {
  const said = kind === "attestation" ? readAttestation(body.jws) : undefined;
  return said?.signer === kid && (code !== "undelivered" || said.payload.spool === "0");
};

/** What has happened stays so: persons say what becomes of it. */
const nothing: Shows = () => false;

const SHOWS: { readonly [C in BreakCode]: Shows } = {
  "missing-report": ofJob,
  "missing-job": ofJob,
  duration: ofJob,
  "foreign-runner": ofJob,
  "other-namespace": ofJob,
  "counter-gap": ofCounter,
  "missing-attestation": ofKey,
  undelivered: ofKey,
  "clock-offset": nothing,
  "over-timeout": nothing,
  "over-capacity": nothing,
  "sudden-jump": nothing,
  /** That it is of the same day, kind and source the chain of such breaks says (flow/reconcile/end.ts). */
  "source-count": (_, { kind }) => kind === "source_count",
  /** Which of them those say who see all of the feed's (core/feed/acknowledgement.ts). */
  "portal-difference": (_, { kind }) => kind === "feed_ack",
};

/** Whether an entry can show that what a break says is over. */
export function heals(broken: Body<"break">, shown: Entry): boolean {
  return SHOWS[broken.code](broken, shown);
}
