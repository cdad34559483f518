/** What gitlab-runner lists at `/debug/jobs/list`, version 2: one line of text a job. */
import { IntegerText } from "../../core/unit.ts";

export interface ListedJob {
  /** Its project's web address: all that the list says of it. */
  project: string;
  id: string;
  /** Since the job began, by the runner's monotonic clock. */
  elapsedMs: bigint;
}

export interface JobList {
  running: ListedJob[];
  /** Lines of another form. */
  malformed: number;
}

const LINE = /^url=(\S+)\/-\/jobs\/([0-9]+) state=(\S*) .*duration=(\S+)$/;
/** The duration of others goes on growing in the list, while their end is being told to GitLab. */
const RUNNING = new Set(["pending", "running"]);

export function readJobList(text: string): JobList {
  const list: JobList = { running: [], malformed: 0 };
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const [, project = "", id = "", state = "", duration = ""] = LINE.exec(line) ?? [];
    const elapsedMs = goDurationMs(duration);
    if (elapsedMs === undefined || !IntegerText.safeParse(id).success) list.malformed += 1;
    else if (RUNNING.has(state)) list.running.push({ project, id, elapsedMs });
  }
  return list;
}

const HOURS = /^(?:([0-9]{1,7})h)?(?:([0-9]{1,9})m)?([0-9]{1,9})(?:\.([0-9]{1,9}))?s$/;
const LESS_THAN_A_SECOND = /^([0-9]{1,9})(?:\.[0-9]{1,9})?(ms|µs|us|ns)$/;

/** As Go's `time.Duration` prints itself, `1h2m3.004s` or `4.5ms`, cut to whole milliseconds. */
export function goDurationMs(text: string): bigint | undefined {
  const small = LESS_THAN_A_SECOND.exec(text);
  if (small !== null) return small[2] === "ms" ? BigInt(small[1] ?? 0) : 0n;
  const whole = HOURS.exec(text);
  if (whole === null) return undefined;
  const [, hours = "0", minutes = "0", seconds = "0", fraction = ""] = whole;
  const sum = (BigInt(hours) * 60n + BigInt(minutes)) * 60n + BigInt(seconds);
  return sum * 1_000n + BigInt(fraction.padEnd(3, "0").slice(0, 3));
}
