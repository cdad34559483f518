/**
 * The guard before every write: a database that is behind its archive, or differs from it, is
 * neither appended to nor signed (DESIGN §1, invariant 8).
 */
import type { Hash, Sha256 } from "../../core/hash.ts";
import type { Problem, ProblemCode } from "../../core/problem.ts";
import { equal } from "../../core/text.ts";
import { edgeRoot } from "../../core/tile.ts";
import type { Archive } from "../../store/archive.ts";
import { readRoot } from "../../store/checkpoints.ts";
import type { Transaction } from "../../store/connect.ts";
import { readSeal, type Seal } from "../../store/seals.ts";
import type { Clock } from "../clock.ts";
import { extend } from "./extend.ts";
import { logBehind, refusalOf } from "./refusal.ts";
import type { SignerFor } from "./signed-checkpoint.ts";

/**
 * A log's head as the database shows it. `copy` says which copy of the database that is, compared for
 * equality only: another one means a restart, a failover or a restore.
 */
export interface SeenHead {
  size: bigint;
  leaf: Hash;
  copy: string;
}

/** What append asks of the guard. */
export interface Guard {
  /**
   * May this log be written? Call it under the lock of the head row, with the head as read there.
   * Costs no I/O unless something changed.
   *
   * @throws Problem `log-behind`, `archive-unavailable`; its `cause` says what was found
   */
  assertWritable(tx: Transaction, log: string, head: SeenHead): Promise<void>;

  /** After COMMIT: entries 0 … size−1 stand, and `leaf` is the last one's. */
  committed(log: string, size: bigint, leaf: Hash): void;
}

/** What seal asks and tells, and what operators are shown. */
export interface SealGuard extends Guard {
  /**
   * Asked before heads are read; what it gives back judges them like `assertWritable`, but a failed
   * seal does not keep the next one from trying.
   */
  sealable(
    logs: readonly string[],
  ): (tx: Transaction, log: string, head: SeenHead) => Promise<void>;
  /** The archive refused, or could not take, what a seal brought: no appends until one goes through. */
  sealFailed(log: string, problem: Problem): void;
  sealed(log: string): void;
  /** Logs that are refused now, and why. */
  state(): ReadonlyMap<string, ProblemCode>;
}

export interface GuardOptions {
  archive: Archive;
  signerFor: SignerFor;
  clock: Clock;
  hash?: Sha256;
}

/** A refused log is looked at again no more often than this. */
const RECHECK_MS = 1_000;
/**
 * A sealer that did not look for so long looks before it signs: it may be left on a database that
 * another has taken the place of. Half of the time for which retention leaves the archive alone.
 */
const LOOK_MS = 1_800_000;

interface Refusal {
  problem: Problem;
  lookedAt: number;
}

export function openGuard(options: GuardOptions): SealGuard {
  const { clock } = options;
  /** The head that the archive was last found to agree with, or a later one of the same copy. */
  const known = new Map<string, SeenHead>();
  const looked = new Map<string, number>();
  const refused = new Map<string, Refusal>();
  const unsealable = new Map<string, Problem>();

  async function assertAgreeing(
    tx: Transaction,
    log: string,
    head: SeenHead,
    before: SeenHead | undefined,
  ): Promise<void> {
    if (before === undefined || !follows(before, head)) {
      known.delete(log);
      await look(tx, log, head);
    }
    const now = known.get(log);
    if (now === undefined || head.size > now.size) known.set(log, head);
  }

  async function look(tx: Transaction, log: string, head: SeenHead): Promise<void> {
    const refusal = refused.get(log);
    // In both directions: a clock that stepped back must not keep the log refused for as long.
    if (refusal && Math.abs(clock.now() - refusal.lookedAt) < RECHECK_MS) throw refusal.problem;
    try {
      await assertAgreement(tx, options, log, head);
      refused.delete(log);
      looked.set(log, clock.now());
    } catch (error) {
      const problem = refusalOf(error);
      if (problem === undefined) throw error;
      refused.set(log, { problem, lookedAt: clock.now() });
      throw problem;
    }
  }

  /** In both directions, as above. */
  function lookedLately(log: string): boolean {
    return Math.abs(clock.now() - (looked.get(log) ?? Number.NEGATIVE_INFINITY)) < LOOK_MS;
  }

  return {
    assertWritable: async (tx, log, head) => {
      const problem = unsealable.get(log);
      if (problem !== undefined) throw problem;
      await assertAgreeing(tx, log, head, known.get(log));
    },
    sealable: (logs) => {
      // Known before the look: a commit that is told of in between is no head that went back.
      const before = new Map(logs.map((log) => [log, known.get(log)]));
      return (tx, log, head) =>
        assertAgreeing(tx, log, head, lookedLately(log) ? before.get(log) : undefined);
    },
    committed: (log, size, leaf) => {
      const before = known.get(log);
      // Two commits may be told of in either order; the larger head is the later one.
      if (before && size > before.size) known.set(log, { ...before, size, leaf });
    },
    sealFailed: (log, problem) => {
      unsealable.set(log, problem);
    },
    sealed: (log) => {
      unsealable.delete(log);
    },
    state: () => {
      const refusals = Array.from(refused, ([log, { problem }]) => [log, problem.code] as const);
      const failures = Array.from(unsealable, ([log, { code }]) => [log, code] as const);
      return new Map([...refusals, ...failures]);
    },
  };
}

/** Can `head` have come about from `before` by nothing but appending? */
export function follows(before: SeenHead, head: SeenHead): boolean {
  if (head.copy !== before.copy) return false;
  return head.size > before.size || (head.size === before.size && equal(head.leaf, before.leaf));
}

/**
 * Does the database hold all that the archive's newest checkpoint was signed for, and no more sealed?
 *
 * @throws Problem `log-behind`; ArchiveError
 */
export async function assertAgreement(
  tx: Transaction,
  { archive, signerFor, hash }: Omit<GuardOptions, "clock">,
  log: string,
  head: SeenHead,
): Promise<void> {
  // Database first: whoever seals meanwhile writes the archive first, so it can only be ahead.
  const seal = await readSeal(tx, log);
  if (seal.size > head.size) throw logBehind(`sealed to ${seal.size}, head at ${head.size}`);
  const archived = await archive.latestCheckpoint(log);
  if (archived === undefined) {
    if (seal.size === 0n) return;
    const told = `sealed to ${seal.size}, but the archive holds no checkpoint`;
    throw logBehind(`${told}: bring it back, or run minutebook adopt-archive`);
  }
  const { size, note } = archived;
  const signer = await signerFor(tx, log, head.size);
  const checkpoint = signer.open(note);
  if (signer.isRetired(note)) {
    throw logBehind(`the archive's checkpoint ${size} rests on a key that the log has retired`);
  }
  if (checkpoint?.size !== size) throw logBehind(`the archive's checkpoint ${size} is not ours`);
  if (size < seal.size) throw logBehind(`sealed to ${seal.size}, archived only to ${size}`);
  if (size > head.size) {
    throw logBehind(`archived to ${size}, head at ${head.size}: run minutebook recover`);
  }
  if (!equal(await rootAt(tx, log, seal, size, hash), checkpoint.root)) {
    const told = `the database has another root at ${size} than the archive`;
    throw logBehind(`${told}: minutebook recover says from where on`);
  }
}

/** A sealer that stopped between archive and commit leaves no row: then the entries have to tell. */
async function rootAt(
  tx: Transaction,
  log: string,
  seal: Seal,
  size: bigint,
  hash: Sha256 | undefined,
): Promise<Hash> {
  const stored = await readRoot(tx, log, size);
  if (stored !== undefined) return stored;
  let { edge } = seal;
  for await (const page of extend(tx, log, seal, size, hash)) ({ edge } = page);
  return edgeRoot(edge, hash);
}
