/** `minutebook agent import`: a folder of usage logs becomes signed reports, and these are sent. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { attest } from "./attest.ts";
import { Client, type ClientOptions, SURROUNDINGS, type Surroundings } from "./client.ts";
import { BATCH_DEFAULT, BATCH_MAX, deliver, type Outcome } from "./deliver.ts";
import { AgentError, errnoOf } from "./failure.ts";
import { type Holding, hold } from "./hold.ts";
import { alarmOf, canWait } from "./receipts.ts";
import { finishRotation } from "./rotate.ts";
import { scanFile } from "./scan.ts";
import type { AgentState, Enrolment } from "./state.ts";
import { addTally, emptyTally, type Summary, type Tally } from "./summary.ts";
import { USAGE_LOG } from "./usagelog.ts";

export interface Progress {
  phase: "reading" | "sending" | "proving";
  /** Lines read so far, reports answered, or promises looked at. */
  done: number;
  /** Of how many; undefined while lines are read. */
  total: number | undefined;
}

export interface ImportOptions {
  state: AgentState;
  folder: string;
  /** Reports in one request, 1 … 500; 100 when left out. */
  batch?: number | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: (progress: Progress) => void;
  /** Whole sentences about lines, files and pauses. */
  onNotice?: (notice: string) => void;
  surroundings?: Surroundings;
}

/**
 * Reads all that is new, then sends all that has no final answer, also from earlier runs, holds the logs
 * to their receipts, and attests. Each is done whatever becomes of the others; what a run leaves undone,
 * however it ends, the next one does.
 * @throws AgentError, of the first that failed; or the signal's reason
 */
export async function importFolder(options: ImportOptions): Promise<Summary> {
  const { state, batch = BATCH_DEFAULT } = options;
  if (!Number.isInteger(batch) || batch < 1 || batch > BATCH_MAX) {
    throw new RangeError("import: a batch is 1 to 500 reports");
  }
  const tallies = new Map<string, Tally>();
  const tally = (log: string): Tally => {
    const found = tallies.get(log) ?? emptyTally();
    tallies.set(log, found);
    return found;
  };
  let read = { files: 0, lines: 0, malformed: 0 };
  await each([
    async () => {
      await finishRotations(options);
      read = await readFolder(options, tally);
    },
    () => sendAll(options, batch, tally),
  ]);
  return summarize(state, read, tally);
}

/** A client for an enrolment's server, with what the caller of the import gave. */
function clientFor(server: string, { surroundings, signal, onNotice }: ImportOptions): Client {
  const options: ClientOptions = {
    server,
    surroundings: surroundings ?? SURROUNDINGS,
    signal,
    onRetry: (reason, ms) => onNotice?.(`${server}: ${reason}; next try in ${ms} ms.`),
  };
  return new Client(options);
}

/** A key whose final counter is said must not sign: so before anything is read. */
async function finishRotations(options: ImportOptions): Promise<void> {
  const { enrolments, rotations } = options.state.settings;
  await each(
    rotations.map((pending) => async () => {
      const enrolment = enrolments.find(({ kid }) => kid === pending.kid);
      if (enrolment === undefined) return;
      await finishRotation(options.state, pending, clientFor(enrolment.server, options));
    }),
  );
}

async function readFolder(
  { state, folder, signal, surroundings = SURROUNDINGS, onProgress, onNotice }: ImportOptions,
  tally: (log: string) => Tally,
): Promise<Pick<Summary, "files" | "lines" | "malformed">> {
  const sum = { files: 0, lines: 0, malformed: 0 };
  const scan = {
    state,
    now: surroundings.now,
    signal,
    tally,
    onLines: (lines: number, malformed: number) => {
      sum.lines += lines;
      sum.malformed += malformed;
      onProgress?.({ phase: "reading", done: sum.lines, total: undefined });
    },
    onNotice: (notice: string) => onNotice?.(notice),
  };
  for (const name of usageLogs(folder)) {
    const path = join(folder, name);
    try {
      if (await scanFile(scan, path)) sum.files += 1;
    } catch (error) {
      throw unreadable(path, error);
    }
  }
  return sum;
}

function usageLogs(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => USAGE_LOG.test(name))
      .sort();
  } catch (error) {
    throw unreadable(folder, error);
  }
}

function unreadable(path: string, cause: unknown): unknown {
  const code = errnoOf(cause);
  if (code === undefined || cause instanceof AgentError) return cause;
  return new AgentError("unreadable", `${path} cannot be read (${code}).`, { cause });
}

/** Logs side by side: one whose server is away must not hold up the others. */
async function sendAll(
  options: ImportOptions,
  batch: number,
  tally: (log: string) => Tally,
): Promise<void> {
  const { state, onProgress } = options;
  const logs = new Map(state.settings.enrolments.map((enrolment) => [enrolment.log, enrolment]));
  const total = [...logs.keys()].reduce((sum, log) => sum + state.spool(log).depth, 0);
  let done = 0;
  const send = async ({ log, server }: Enrolment): Promise<void> => {
    const client = clientFor(server, options);
    const delivery = { log, spool: state.spool(log), client };
    const onAnswers = (outcomes: Outcome[]): void => {
      for (const outcome of outcomes) tally(log)[outcome] += 1;
      done += outcomes.length;
      onProgress?.({ phase: "sending", done, total: Math.max(done, total) });
    };
    let isSent = false;
    const send = async (): Promise<void> => {
      await deliver(delivery, batch, onAnswers);
      isSent = true;
    };
    const attesting = state.settings.enrolments
      .filter((other) => other.log === log)
      .map((enrolment) => () => attest(state, enrolment, client));
    await each([
      send,
      async () => {
        await holdLog(options, { state, log, client });
        if (isSent) await send(); // what the log turned out not to have
      },
      ...attesting,
    ]);
  };
  const attempt = (enrolment: Enrolment): Promise<void> =>
    send(enrolment).catch((error: unknown) => {
      // Said at once: the others may go on for as long as their servers are away.
      if (logs.size > 1 && error instanceof AgentError) options.onNotice?.(error.message);
      throw error;
    });
  // All are waited for: one that fails must not leave others at work on a state that is closed.
  const ends = await Promise.allSettled([...logs.values()].map(attempt));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

/** What fails here is only said: everything is sent, and proof can wait. */
async function holdLog({ onNotice }: ImportOptions, holding: Holding): Promise<void> {
  try {
    const findings = await hold(holding);
    const said = alarmOf(findings);
    if (said !== "") onNotice?.(`${holding.log}: ${said} See \`agent receipts\`.`);
  } catch (error) {
    if (!canWait(error)) throw error;
    onNotice?.(error.message);
  }
  holding.state.spool(holding.log).prune(holding.client.now());
}

/** In turn. What one of them cannot do keeps no other from being done, and is thrown in the end. */
async function each(steps: readonly (() => Promise<void>)[]): Promise<void> {
  let first: AgentError | undefined;
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      if (!canWait(error)) throw error;
      first ??= error;
    }
  }
  if (first !== undefined) throw first;
}

function summarize(
  state: AgentState,
  read: Pick<Summary, "files" | "lines" | "malformed">,
  tally: (log: string) => Tally,
): Summary {
  const total = emptyTally();
  const instances = new Map(
    state.settings.enrolments.map(({ log, unique_id }) => [log, unique_id]),
  );
  const logs = [...instances].map(([log, unique_id]) => ({ log, unique_id, tally: tally(log) }));
  for (const { tally: one } of logs) addTally(total, one);
  const unrouted = state.sources.all().reduce((sum, source) => sum + source.unrouted.count, 0);
  return { ...read, unrouted, total, logs };
}
