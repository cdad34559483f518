/**
 * A customer's check of one build, offline: from the proof's file and trusted keys to "this build is in
 * the log, and this is what it was charged". It reads like its argument: place, witnesses, report, charge.
 */
import type { Entry, EntryOf } from "../../src/core/entry.ts";
import type { Policy } from "../../src/core/policy.ts";
import type { OpenedCheckpoint } from "../archive/checkpoints.ts";
import { Cosignatures, type Witnessed } from "../archive/cosignatures.ts";
import { endedBy, type FindingCode, Findings, type OpenCode } from "../finding.ts";
import { readSigned } from "../prefix/statement.ts";
import type { Source } from "../source.ts";
import { type Build, buildOf, type ReportEntry } from "./build.ts";
import { keyOf, type SigningKey } from "./key.ts";
import { type Outcome, openProof, type Trusting } from "./open.ts";

export interface CheckOptions extends Trusting {
  policy: Policy | undefined;
  /** Seconds since the epoch: what witnesses signed later than that does not count. */
  now: bigint;
  /** The proof of the `key` entry of whoever signed the report: its file's text. */
  keyProof: string | undefined;
  /** What the build must be. */
  expected: Expected;
}

/** Every member that is there must be the build's. */
export type Expected = Partial<Record<(typeof EXPECTABLE)[number], string>>;

const EXPECTABLE = [
  "log",
  "index",
  "job",
  "project",
  "namespace",
  "duration_ms",
  "factor",
  "compute_ms",
] as const;

/** `log`, `kind` and `index` are those of the entry, where one was proven. */
export interface Checked extends Outcome {
  proven: { log: string; kind: string; index: bigint; checkpoint: OpenedCheckpoint } | undefined;
  witnessed: Witnessed | undefined;
  build: Build | undefined;
  /** What was not looked at, in sentences. */
  limits: string[];
}

/** @throws CannotLook when a checkpoint is by no given key: it proves nothing and accuses nobody */
export async function checkProof(text: string, options: CheckOptions): Promise<Checked> {
  const outcome = { findings: new Findings(), open: new Findings<OpenCode>(), limits: [RETIRED] };
  const opened = openProof(text, options, outcome);
  if (opened === undefined) {
    return { ...outcome, proven: undefined, witnessed: undefined, build: undefined };
  }
  const { checkpoint, entry } = opened;
  const { index, kind, log } = entry;
  const checked: Checked = {
    ...outcome,
    proven: { log, kind, index, checkpoint },
    witnessed: await witnessedBy(checkpoint, options, outcome),
    build: undefined,
  };
  let ended: unknown;
  try {
    readReport(entry, options, checked);
  } catch (error) {
    ended = error;
    readReport(entry, { ...options, keyProof: undefined }, checked);
  }
  compare(options.expected, checked);
  // A key's proof that cannot be looked at takes back nothing that was found without it.
  if (ended !== undefined) checked.limits.push(endedBy(ended, checked.findings));
  return checked;
}

/** Only the whole log says so, in entries that follow. */
const RETIRED = "whether the checkpoint's key was retired before takes the whole log: see verify";

function readReport(entry: Entry, options: CheckOptions, checked: Checked): void {
  if (entry.kind === "usage" || entry.kind === "conflict" || entry.kind === "hold") {
    checked.build = readBuild(entry, options, checked);
  } else {
    checked.limits.push("the entry is no build's");
  }
}

async function witnessedBy(
  checkpoint: OpenedCheckpoint,
  { now, policy, verify }: CheckOptions,
  { findings, limits }: Pick<Checked, "findings" | "limits">,
): Promise<Witnessed | undefined> {
  if (policy === undefined) return undefined;
  const cosignatures = new Cosignatures(NOTHING_BESIDE, { policy, verify, now });
  const witnessed = await cosignatures.of(checkpoint, findings);
  limits.push(...cosignatures.limits);
  if (!witnessed.quorum) {
    findings.add("quorum-missing", {}, `${witnessed.by.length} have cosigned the proof's`);
  }
  return witnessed;
}

/** Cosignatures come in the proof's own checkpoint: there is no archive to have more of them. */
const NOTHING_BESIDE: Source = { read: async () => undefined, list: async function* () {} };

function readBuild(entry: ReportEntry, options: CheckOptions, checked: Checked): Build | undefined {
  const { index } = entry;
  const add = (code: FindingCode, detail: string): void =>
    checked.findings.add(code, { index }, detail);
  const key = signerOf(entry, options, checked);
  const keys = new Map(key && [[key.kid, key.publicKey]]);
  const said = readSigned({ kind: "report", text: entry.body.jws }, keys, options);
  if (typeof said === "string") add(said, "what the runner signed");
  if (typeof said === "string" || said.kind !== "report") return undefined;
  const { holds, kid, payload } = said;
  if (key !== undefined && key.kid !== kid) add("proof-key", `of ${key.kid}, and ${kid} signed`);
  else if (key !== undefined && !holds) add("jws-signature", `it is not by ${kid}`);
  if (payload.log !== entry.log) add("jws-log", `a report for log ${payload.log}`);
  const build = buildOf(entry, kid, payload);
  if (entry.kind === "usage") compareCharge(entry, build, add);
  return build;
}

function signerOf(
  entry: ReportEntry,
  { keyProof, ...options }: CheckOptions,
  { findings, limits }: Checked,
): SigningKey | undefined {
  if (keyProof === undefined) {
    limits.push("the runner's signature was not verified: that takes its key's proof");
    return undefined;
  }
  const key = keyOf(keyProof, options, entry);
  if (typeof key !== "string") return key;
  findings.add("proof-key", { index: entry.index }, key);
  return undefined;
}

function compareCharge(
  { body }: EntryOf<"usage">,
  { charge }: Build,
  add: (code: FindingCode, detail: string) => void,
): void {
  if (charge?.compute_ms === body.compute_ms) return;
  add("proof-charge", `the entry says ${body.compute_ms}, its own factor ${charge?.compute_ms}`);
}

function compare(expected: Expected, { build, findings, proven }: Checked): void {
  const place = proven && { log: proven.log, index: String(proven.index) };
  const found: Expected = { ...place, ...build, ...build?.charge };
  for (const name of EXPECTABLE) {
    const [own, other] = [found[name], expected[name]];
    if (other === undefined || other === own) continue;
    findings.add("proof-build", {}, `its ${name} is ${own ?? "not said"}, and not ${other}`);
  }
}
