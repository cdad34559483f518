/** What hosts do that is strange by itself, one host for each kind, and what is to be found of it. */
import { call } from "../../../src/command/api.ts";
import { instantText } from "../../../src/core/unit.ts";
import type { Build } from "./builds.ts";
import { Host, type Place } from "./host.ts";
import type { Planted } from "./plan.ts";

/** Jobs at once that the crowded host's runner may have. */
export const CROWDED = { runner: "980005", jobs: 2n };

export interface Strange {
  /** What its hosts reported: the platform has it, too. */
  builds: readonly Build[];
  planted: readonly Planted[];
  /** A day later, all but the one that is silent speak again. */
  again(): Promise<void>;
}

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
const FIRST_JOB = 970_000;

/** @param host of the log's instance */
export async function beStrange(place: Place, host: string): Promise<Strange> {
  const plot = new Plot(place, host);
  const speak = [...(await speakStrangely(plot)), ...(await runStrangely(plot))];
  await countStrangely(plot);
  const { builds, planted } = plot;
  return {
    builds,
    planted,
    again: async () => {
      for (const one of speak) await one();
    },
  };
}

/** What was reported so far, and what of it is to be found. */
class Plot {
  readonly builds: Build[] = [];
  readonly planted: Planted[] = [];
  readonly place: Place;
  readonly host: string;
  /** Its first instant, epoch milliseconds. */
  readonly today: number;

  constructor(place: Place, host: string) {
    this.place = place;
    this.host = host;
    this.today = Math.floor(place.now() / DAY) * DAY;
  }

  async enrol(runner: string, machineType = "linux-x86-small"): Promise<Host> {
    return await Host.enrol(this.place, runner, machineType);
  }

  plant(code: string, about: string, difference = 0): void {
    this.planted.push({ host: this.host, code, about, difference: BigInt(difference) });
  }

  plantLate(code: string, about: string): void {
    this.planted.push({ host: this.host, code, about, difference: 0n, late: true });
  }

  build(runner: string, namespace: string, { agoMs, ms }: { agoMs: number; ms: number }): Build {
    const ended = this.today - agoMs;
    const made: Build = {
      ...{ host: this.host, runner, tracking: "hosted", project: namespace, namespace },
      job: String(FIRST_JOB + this.builds.length),
      ms: BigInt(ms),
      started: instantText(ended - ms),
      finished: instantText(ended),
    };
    this.builds.push(made);
    return made;
  }
}

/** @returns what each of them says a day later */
async function speakStrangely(plot: Plot): Promise<(() => Promise<void>)[]> {
  const gappy = await plot.enrol("980000");
  const few = [1, 2, 3].map((i) => plot.build("980000", "960000", { agoMs: i * DAY, ms: MINUTE }));
  await gappy.report(few, [1n, 2n, 5n]);
  plot.plantLate("counter-gap", gappy.kid);

  const laden = await plot.enrol("980001");
  await laden.attest({ spool: "3" });
  plot.plantLate("undelivered", laden.kid);

  const silent = await plot.enrol("980002");
  plot.plantLate("missing-attestation", silent.kid);

  const slow = await plot.enrol("980003");
  await slow.attest({ clock_offset_ms: String(-2 * MINUTE) });
  plot.plant("clock-offset", slow.kid, -2 * MINUTE);

  return [
    () => gappy.attest({ counter: "5" }),
    () => laden.attest({ spool: "3" }),
    () => slow.attest({}),
  ];
}

/** @returns as above */
async function runStrangely(plot: Plot): Promise<(() => Promise<void>)[]> {
  const endless = await plot.enrol("980004");
  const long = plot.build("980004", "960004", { agoMs: 2 * DAY, ms: 25 * HOUR });
  await endless.report([long]);
  plot.plant("over-timeout", long.job, HOUR);

  const crowded = await plot.enrol(CROWDED.runner);
  const hour = { agoMs: 2 * DAY, ms: HOUR };
  const crowd = [1, 2, 3].map(() => plot.build(CROWDED.runner, "960005", hour));
  await crowded.report(crowd);
  plot.plant("over-capacity", CROWDED.runner, HOUR);

  const sudden = await plot.enrol("980006", "macos-m2pro-large");
  const usual = [9, 8, 7, 6, 5, 4, 3].map((i) => {
    return plot.build("980006", "960006", { agoMs: i * DAY, ms: MINUTE });
  });
  const jump = plot.build("980006", "960006", { agoMs: 25 * HOUR, ms: 20 * HOUR });
  await sudden.report([...usual, jump]);
  plot.plant("sudden-jump", "960006");

  return [
    () => endless.attest({ counter: "1" }),
    () => crowded.attest({ counter: String(crowd.length) }),
    () => sudden.attest({ counter: String(usual.length + 1) }),
  ];
}

async function countStrangely({ host, place, planted, today }: Plot): Promise<void> {
  const day = instantText(today - DAY).slice(0, "YYYY-MM-DD".length);
  const count = { day, kind: "quota", source: "nobody", stated: "2" };
  await call(place.api, "POST", `/v1/logs/${place.log}/source_counts`, count);
  const about = `quota of ${day}: 2 sent, 0 here`;
  planted.push({ host, code: "source-count", about, difference: 0n });
}
