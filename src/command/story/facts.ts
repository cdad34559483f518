/** What the story tells, as data: `--json` prints this, the page of text is made from it. */

export interface BuildFacts {
  line: string;
  kid: string;
  counter: string;
  digest: string;
  index: string;
  leaf: string;
  prev: string;
  machine_type: string;
  duration_ms: string;
  factor: string;
  compute_ms: string;
  compute_minutes: string;
}

export interface MonthRow {
  namespace: string;
  tracking: string;
  jobs: string;
  compute_minutes: string;
}

interface DecisionFacts {
  job: string;
  allowed: boolean;
  /** As the runner is to be answered. */
  job_status: string;
  remaining_minutes: string;
}

export interface QuotaFacts {
  namespace: string;
  started: DecisionFacts;
  used: DecisionFacts & { minutes: string };
  refused: DecisionFacts;
  stopped: DecisionFacts & { minutes: string };
  /** When the stopped job's report is on the log. */
  reported: { used_minutes: string; live_minutes: string; remaining_minutes: string };
  /** Where live usage is kept, and as of which size of the log the last decision was made. */
  source: string;
  as_of: string;
}

export interface ControlFacts {
  /** What two persons took off one build's charge. Indices are of entries. */
  adjusted: {
    job: string;
    proposal: string;
    approval: string;
    index: string;
    before: string;
    after: string;
  };
  /** A job that nobody reported; `refused` is the code by which it kept its month open. */
  broken: {
    job: string;
    minutes: string;
    code: string;
    index: string;
    refused: string;
    accepted: string;
  };
  closed: {
    month: string;
    index: string;
    jobs: string;
    minutes: string;
    /** `UNANCHORED`, or by what it is anchored. */
    anchor: string;
    /** Of the statement, base64. */
    sha256: string;
  };
}

export interface Story {
  version: string;
  instance: { unique_id: string; platform: string; log: string };
  build: BuildFacts;
  month: { billing_month: string; as_of: string; rows: MonthRow[] };
  outage: { job: string; unanswered_minutes: string; platform_minutes: string; minutes: string };
  quota: QuotaFacts;
  crash: {
    reports: string;
    answered_before: string;
    accepted: string;
    repeated: string;
    duplicates: string;
    before: string;
    after: string;
  };
  control: ControlFacts;
  /** Promises of the service that the agent has proven, and under how large a checkpoint. */
  receipts: { proven: string; broken: string; size: string };
  verified: { proof: string; archive: string; database: string };
  tampered: { index: string; archive: string; database: string };
  serving: {
    url: string;
    data: string;
    vkey_file: string;
    proof_file: string;
    token_files: Record<string, string>;
  };
  seconds: string;
}
