/** The keys that this service holds, matched with what the entries of each log say of its keys. */
import { thumbprint } from "../../core/ed25519.ts";
import { decodeEntry } from "../../core/entry.ts";
import { LogKeys } from "../../core/log-key.ts";
import { formatVkey, parseVkey, type Vkey } from "../../core/note.ts";
import { Problem } from "../../core/problem.ts";
import { receiptKeyName } from "../../core/receipt.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { type FirstKeys, readFirstKeys } from "../../store/first-keys.ts";
import { readLogKeys } from "../../store/registers.ts";
import type { Clock } from "../clock.ts";
import { spoken } from "../log/failure.ts";
import {
  type CheckpointSigner,
  checkpointSigner,
  type SignerFor,
} from "../log/signed-checkpoint.ts";
import type { SigningKey } from "./signing-key.ts";
import {
  firstKeys,
  type HeldKeys,
  heldFor,
  inForce,
  type StandingKeys,
  signerUnavailable,
  standingKeys,
} from "./standing.ts";

export interface Keyring {
  signerFor: SignerFor;
  /** What a log of this id begins under if it is made here. */
  firstKeys(log: string): FirstKeys;
  /** Who signs a log's receipts now. @throws Problem `signer-unavailable`, `busy` */
  receiptSigner(log: string): Promise<ReceiptSigner>;
  /**
   * The key of a log's receipts that has this thumbprint, if one is or ever was, or is held for it: a
   * receipt is good for ever. Of a key that is held nothing is asked; for others few at once are, since
   * any text can name any. @throws Problem `busy`
   */
  receiptKey(log: string, kid: string): Promise<Vkey | undefined>;
  /** As of within the last second, in the order of the logs. @throws Problem `busy` */
  standing(logs: readonly string[]): Promise<StandingKeys[]>;
  /** As of now; `entries` are what the transaction sees. */
  standingIn(tx: Transaction, log: string): Promise<{ entries: LogKeys; keys: StandingKeys }>;
  /** An entry was written: what was known of the log is asked for again. */
  forget(log: string): void;
}

/** `key` signs for the key whose RFC 7638 thumbprint is `kid`. */
export interface ReceiptSigner {
  readonly origin: string;
  readonly kid: string;
  readonly key: SigningKey;
}

/** What another process wrote is known here after so long. */
const KNOWN_MS = 1_000;
/** Anybody may name any log. */
const LOGS_MAX = 10_000;
/** Logs that are asked for at once because of a key that this process does not hold. */
const FORMER_MAX = 4;

/** @param options.sql on which what was committed is seen at once */
export function openKeyring(options: {
  serviceName: string;
  held: HeldKeys;
  sql: Sql;
  clock: Clock;
}): Keyring {
  const { serviceName, held } = options;
  const signers = new Map<string, { of: string; signer: CheckpointSigner }>();
  const receiptKeys = heldFor(held, "receipt");
  const kids = new Map(receiptKeys.map((key) => [key, thumbprint(key.publicKey)]));
  let former = 0;

  const originOf = (log: string): string => `${serviceName}/${log}`;

  function keysOf(log: string, { entries, first }: Folded): StandingKeys {
    return standingKeys(entries, originOf(log), held, first);
  }

  const { standing, forget } = openStanding(options, keysOf);
  return {
    standing,
    forget,
    firstKeys: (log) => firstKeys(originOf(log), held),
    standingIn: async (tx, log) => {
      const folded = (await readFolded(tx, [log]))(log);
      return { entries: folded.entries, keys: keysOf(log, folded) };
    },
    receiptSigner: async (log) => {
      if (!held.available()) throw signerUnavailable(new Error("keys: the signer is away"));
      const [keys] = await standing([log]);
      if (keys === undefined) throw new Error("keyring: no keys were read");
      // The oldest: until it is retired, agents have time to hear of the one that follows.
      const [key] = inForce(keys.receipt);
      return { origin: keys.origin, kid: kids.get(key) ?? "", key };
    },
    receiptKey: async (log, kid) => {
      const ours = receiptKeys.find((key) => kids.get(key) === kid);
      const name = receiptKeyName(originOf(log));
      if (ours !== undefined) return parseVkey(formatVkey(name, ours.publicKey));
      if (former >= FORMER_MAX) throw new Problem("busy");
      former += 1;
      try {
        const [keys] = await standing([log]);
        return keys?.receipt
          .flatMap(({ vkey }) => parseVkey(vkey) ?? [])
          .find(({ publicKey }) => thumbprint(publicKey) === kid);
      } finally {
        former -= 1;
      }
    },
    signerFor: async (tx, log, size) => {
      const keys = keysOf(log, (await readFolded(tx, [log], size))(log));
      const of = keys.checkpoint
        .map(({ vkey, state, index }) => `${state} ${index} ${vkey}`)
        .join("\n");
      const before = signers.get(log);
      if (before?.of === of) return before.signer;
      const signer = signerOf(keys);
      if (signers.size >= LOGS_MAX) signers.clear();
      signers.set(log, { of, signer });
      return signer;
    },
  };
}

/** What was asked for within the last second is not asked for again. */
function openStanding(
  { sql, clock }: { sql: Sql; clock: Clock },
  keysOf: (log: string, folded: Folded) => StandingKeys,
): Pick<Keyring, "standing" | "forget"> {
  const known = new Map<string, { keys: Promise<StandingKeys>; at: number }>();

  function recall(log: string, at: number): Promise<StandingKeys> | undefined {
    const before = known.get(log);
    // In both directions: a clock that stepped back must not prolong anything.
    return before && Math.abs(at - before.at) < KNOWN_MS ? before.keys : undefined;
  }

  /** Asked for once by all who ask at once. */
  function learn(logs: readonly string[], at: number): void {
    if (known.size + logs.length > LOGS_MAX) known.clear();
    const reading = readFolded(sql, logs);
    for (const log of logs) {
      const keys = reading.then(
        (folded) => keysOf(log, folded(log)),
        (error: unknown) => {
          known.delete(log);
          throw spoken(error);
        },
      );
      known.set(log, { keys, at });
    }
  }

  return {
    forget: (log) => void known.delete(log),
    standing: async (logs) => {
      const at = clock.now();
      const missing = logs.filter((log) => recall(log, at) === undefined);
      const kept = logs.map((log) => recall(log, at));
      if (missing.length > 0) learn(missing, at);
      const all = logs.map((log, i) => kept[i] ?? known.get(log)?.keys);
      return await Promise.all(all.filter((keys) => keys !== undefined));
    },
  };
}

/**
 * Signs with all that are in force; every key that is held for the log is believed, and every one that
 * was the log's, up to where it was retired.
 */
function signerOf({ origin, checkpoint }: StandingKeys): CheckpointSigner {
  const others = checkpoint.flatMap(({ vkey: text, state, index }) => {
    const vkey = parseVkey(text);
    return vkey ? [{ vkey, retiredAt: state === "retired" ? index : undefined }] : [];
  });
  return checkpointSigner(origin, inForce(checkpoint), others);
}

interface Folded {
  entries: LogKeys;
  first?: FirstKeys | undefined;
}

/** By log, the entries below `size`; all, if it is absent. */
async function readFolded(
  sql: Sql | Transaction,
  logs: readonly string[],
  size?: bigint,
): Promise<(log: string) => Folded> {
  const folded = new Map(logs.map((log): [string, Folded] => [log, { entries: new LogKeys() }]));
  const [named, begun] = await Promise.all([readLogKeys(sql, logs), readFirstKeys(sql, logs)]);
  for (const { log, index, bytes } of named) {
    if (size !== undefined && index >= size) continue;
    const entry = decodeEntry(bytes);
    if (typeof entry === "string" || entry.kind !== "log_key") {
      throw new Error("keyring: another kind of entry");
    }
    folded.get(log)?.entries.apply(entry);
  }
  for (const { log, ...first } of begun) {
    const known = folded.get(log);
    if (known !== undefined) known.first = first;
  }
  return (log) => folded.get(log) ?? { entries: new LogKeys() };
}
