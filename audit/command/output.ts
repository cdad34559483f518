/** What all commands share: where they write to, how they end, and what each of them is. */
import cliProgress from "cli-progress";
import type { Command } from "commander";
import { CannotLook } from "../finding.ts";

/** Where a command writes to; `progress` wants a terminal. */
export interface Output {
  out(text: string): void;
  err(text: string): void;
  progress: boolean;
}

/** 0 all proven, 1 a finding, 2 could not look or could not judge. */
export type Exit = 0 | 1 | 2;
export const COULD_NOT_LOOK = 2;

/** Adds one command to the program; `done` takes the status that it ends with. */
export type AddCommand = (program: Command, output: Output, done: (exit: Exit) => void) => void;

export interface Bar {
  update(done: bigint, size: bigint): void;
  stop(): void;
}

/** Undefined where nobody watches. */
export function progressBar(output: Output, name: string, unit: string): Bar | undefined {
  if (!output.progress) return undefined;
  const bar = new cliProgress.SingleBar({
    format: `${name} {bar} {value}/{total} ${unit}, {eta_formatted}`,
    stream: process.stderr,
    clearOnComplete: true,
  });
  bar.start(1, 0);
  return {
    update: (done, size) => {
      bar.setTotal(Number(size));
      bar.update(Number(done));
    },
    stop: () => bar.stop(),
  };
}

/** On one line. Not even a fault of this program, or a full disk, may end with the status of a finding. */
export function reason(error: unknown): string {
  return (error instanceof CannotLook ? error.message : String(error)).replace(/\s+/g, " ");
}

/** A finding outweighs what could not be looked at, and that outweighs what was proven. */
export function worst(exits: Iterable<Exit>): Exit {
  const all = new Set(exits);
  if (all.has(1)) return 1;
  return all.has(COULD_NOT_LOOK) ? COULD_NOT_LOOK : 0;
}

/** For options that may come again. */
export function collect(value: string, before: string[]): string[] {
  return [...before, value];
}
