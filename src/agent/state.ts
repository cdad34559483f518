/** The agent's state folder: enrolments, keys, spools. One process at a time has it open. */
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { HashText, Kid, LogId, NonEmptyText } from "../core/unit.ts";
import { replaceFile, syncFolder } from "./durable.ts";
import { AgentError, errnoOf } from "./failure.ts";
import { createKey, loadKey, type SigningKey } from "./key.ts";
import { lockFolder } from "./lock.ts";
import { SourceRegister } from "./sources.ts";
import { Spool } from "./spool.ts";
import { Trust } from "./trust.ts";

const Enrolment = z.strictObject({
  unique_id: NonEmptyText,
  log: LogId,
  server: z.url(),
  platform: z.string(),
  kid: Kid,
  /** UUIDs of the runners that the key may report for. */
  runners: z.array(NonEmptyText),
  token_sha256: HashText,
});
export type Enrolment = z.infer<typeof Enrolment>;

/** Signed and perhaps sent: until an answer comes, the same bytes are sent again. */
const PendingClaim = z.strictObject({
  log: LogId,
  kid: Kid,
  token_sha256: HashText,
  claim: z.string(),
});
export type PendingClaim = z.infer<typeof PendingClaim>;

/** From its writing on, the old key signs no report: its final counter is said. */
const PendingRotation = z.strictObject({
  kid: Kid,
  successor: Kid,
  rotation: z.string(),
  claim: z.string(),
});
export type PendingRotation = z.infer<typeof PendingRotation>;

const Settings = z.strictObject({
  v: z.literal("1"),
  enrolments: z.array(Enrolment),
  claims: z.array(PendingClaim),
  rotations: z.array(PendingRotation),
  /** By log. Agents before receipts knew no key of a log. */
  trust: z.array(Trust).default([]),
});
export type Settings = z.infer<typeof Settings>;

const NOTHING: Settings = { v: "1", enrolments: [], claims: [], rotations: [], trust: [] };

const SETTINGS = "agent.json";
const KEYS = "keys";

export class AgentState {
  readonly folder: string;
  readonly #unlock: () => void;
  readonly #spools = new Map<string, Spool>();
  readonly sources: SourceRegister;
  #settings: Settings;

  /**
   * Makes the folder where there is none.
   * @throws AgentError `in-use`, `damaged`
   */
  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#unlock = lockFolder(folder);
    try {
      removeTemporaries(folder);
      this.#settings = readSettings(this.#settingsPath);
      this.sources = new SourceRegister(join(folder, "sources"));
    } catch (error) {
      this.#unlock();
      throw error;
    }
  }

  get settings(): Readonly<Settings> {
    return this.#settings;
  }

  /** Durable on return. */
  save(changes: Partial<Settings>): void {
    const settings = { ...this.#settings, ...changes };
    replaceFile(this.#settingsPath, `${JSON.stringify(settings, undefined, 2)}\n`);
    this.#settings = settings;
  }

  /** The keys of a log; undefined where nobody has said them. */
  trust(log: string): Trust | undefined {
    return this.#settings.trust.find((trust) => trust.log === log);
  }

  /** With this in place of what was trusted of the same log. Durable once saved. */
  trusting(trust: Trust): Pick<Settings, "trust"> {
    const others = this.#settings.trust.filter(({ log }) => log !== trust.log);
    return { trust: [...others, trust] };
  }

  createKey(): SigningKey {
    return createKey(join(this.folder, KEYS));
  }

  key(kid: string): SigningKey {
    return keyOf(this.folder, kid);
  }

  /** The folder of what shows that logs broke their promises. */
  get evidence(): string {
    return join(this.folder, "evidence");
  }

  spool(log: string): Spool {
    const spool = this.#spools.get(log) ?? new Spool(join(this.folder, "spool", log));
    this.#spools.set(log, spool);
    return spool;
  }

  close(): void {
    for (const spool of this.#spools.values()) spool.close();
    this.sources.close();
    this.#unlock();
  }

  get #settingsPath(): string {
    return join(this.folder, SETTINGS);
  }
}

/**
 * As they are now, without the lock: whoever changes them replaces the file as a whole.
 * @throws AgentError `damaged`
 */
export function readEnrolments(folder: string): readonly Enrolment[] {
  return readSettings(join(folder, SETTINGS)).enrolments;
}

/** An instance may have several enrolments: the newest that names the runner, else the newest. */
export function enrolmentFor(
  enrolments: readonly Enrolment[],
  uniqueId: string,
  runner: string,
): Enrolment | undefined {
  const own = enrolments.filter(({ unique_id }) => unique_id === uniqueId);
  return own.findLast(({ runners }) => runners.includes(runner)) ?? own.at(-1);
}

/** @throws AgentError `damaged` */
export function keyOf(folder: string, kid: string): SigningKey {
  return loadKey(join(folder, KEYS), kid);
}

function readSettings(path: string): Settings {
  try {
    return Settings.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (cause) {
    if (errnoOf(cause) === "ENOENT") return NOTHING;
    throw new AgentError("damaged", `${path} is not this agent's.`, { cause });
  }
}

/** Left by a crash. The lock's own may be another contender's, at work this moment. */
function removeTemporaries(folder: string): void {
  for (const part of [folder, join(folder, KEYS), join(folder, "evidence")]) {
    if (mkdirSync(part, { recursive: true, mode: 0o700 }) !== undefined) syncFolder(dirname(part));
    for (const name of readdirSync(part)) {
      if (name.endsWith(".tmp") && !name.startsWith("agent.lock.")) rmSync(join(part, name));
    }
  }
}
