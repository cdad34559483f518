/**
 * Whose word an agent takes for a log's: the keys of its checkpoints and of its receipts. They come
 * with the claim, or from a person; afterwards only an entry of the log changes them, proven under a
 * checkpoint that a key from before has signed.
 */
import { z } from "zod";
import { thumbprint } from "../core/ed25519.ts";
import type { EntryOf } from "../core/entry.ts";
import { isLogKey } from "../core/log-key.ts";
import { parseVkey, type Vkey } from "../core/note.ts";
import {
  coversResults,
  type Receipt,
  readReceipt,
  receiptKeyName,
  verifyReceipt,
} from "../core/receipt.ts";
import { IntegerText, LogId, NonEmptyText } from "../core/unit.ts";
import { AgentError } from "./failure.ts";
import { verifySignature } from "./key.ts";
import type { Answered, Result } from "./spool-record.ts";

const VkeyText = NonEmptyText.refine((text) => parseVkey(text)?.type === "ed25519");

/** Of an honest log's keys; who has a key of a log must not fill a disk by it. */
const KEYS_MAX = 256;

/** What the log's newest entry about a key says, of those that were proven. */
const KeyState = z.strictObject({
  vkey: VkeyText,
  index: IntegerText,
  state: z.enum(["added", "retired"]),
});

/** C2SP vkeys. Keys of receipts stay for ever: what they signed is still promised. */
export const Trust = z.strictObject({
  log: LogId,
  origin: NonEmptyText,
  checkpoint_vkeys: z.array(VkeyText).min(1),
  receipt_vkeys: z.array(VkeyText),
  /** From the log's entries; absent before the first. */
  states: z.array(KeyState).max(KEYS_MAX).exactOptional(),
});
export type Trust = z.infer<typeof Trust>;

/** What a claim's answer says of the log's keys; services before receipts said nothing. */
export const Shown = z.object({
  origin: NonEmptyText.optional(),
  vkey: VkeyText.optional(),
  receipt_vkey: VkeyText.optional(),
});
type Shown = z.infer<typeof Shown>;

/**
 * What a receipt is worth. `unverified`: by a key that is not known, or not yet. `forged`: it is no
 * receipt of the log it is for, or not for these results.
 */
export type Standing = "good" | "unverified" | "missing" | "forged";

/**
 * The keys of a log among those that a person gives: one vkey in a line, of checkpoints and, where
 * known, of receipts; those of other logs are passed over.
 * @throws AgentError `untrusted`, for lines that are none, and where no checkpoint's key is the log's
 */
export function readKeys(log: string, text: string): Trust {
  const lines = text.split("\n").flatMap((line) => line.trim() || []);
  const named = (end: string): string[] =>
    lines.filter((line) => parseVkey(line)?.name.endsWith(end) === true);
  const checkpoint_vkeys = named(`/${log}`);
  const trust = Trust.safeParse({
    log,
    origin: parseVkey(checkpoint_vkeys[0] ?? "")?.name ?? "",
    checkpoint_vkeys,
    receipt_vkeys: named(receiptKeyName(`/${log}`)),
  });
  const areVkeys = lines.every((line) => parseVkey(line) !== undefined);
  if (areVkeys && trust.success && isOfOneLog(trust.data)) return trust.data;
  throw untrusted(`These are not the vkeys of log ${log}: ask whoever runs it.`);
}

/**
 * What was known of a log and what is pinned now, before anybody is asked.
 * @throws AgentError `untrusted`, when these are different keys
 */
export function reconcile(known: Trust | undefined, pinned: Trust | undefined): Trust | undefined {
  if (known === undefined || pinned === undefined) return known ?? pinned;
  if (pinned.checkpoint_vkeys.every((text) => known.checkpoint_vkeys.includes(text))) return known;
  throw untrusted(
    `Log ${known.log} is known here under another key than the one that was pinned. If it is right, say so with \`agent trust\`.`,
  );
}

/**
 * The trust to keep after a claim: what is pinned, or was known, as far as it goes, and for the rest
 * what the service shows. Undefined when there is none of these.
 * @throws AgentError `untrusted`, when the service shows another key than was pinned or known
 */
export function agree(log: string, pinned: Trust | undefined, shown: Shown): Trust | undefined {
  const { origin, vkey, receipt_vkey } = shown;
  if (vkey === undefined) return pinned;
  const first: Trust = {
    log,
    origin: origin ?? "",
    checkpoint_vkeys: [vkey],
    receipt_vkeys: receipt_vkey === undefined ? [] : [receipt_vkey],
  };
  if (!isOfOneLog(first)) {
    throw untrusted(
      `The service shows keys that are not those of log ${log}. Nothing was enrolled.`,
    );
  }
  if (pinned === undefined) return first;
  const receipts = pinned.receipt_vkeys.length > 0 ? pinned.receipt_vkeys : first.receipt_vkeys;
  const fits =
    pinned.checkpoint_vkeys.includes(vkey) &&
    first.receipt_vkeys.every((text) => receipts.includes(text));
  if (fits) return { ...pinned, receipt_vkeys: receipts };
  throw untrusted(
    `The service shows another key for log ${log} than the one that was pinned. Nothing was enrolled.`,
  );
}

/** What a receipt is worth by these keys. Never throws: a receipt is whatever came as one. */
export function standingOf(
  trust: Trust,
  { receipt: text, results }: Pick<Answered, "receipt" | "results">,
): Standing {
  if (text === undefined) return "missing";
  const receipt = readReceipt(text);
  if (receipt === undefined || !isFor(receipt.payload, trust, results)) return "forged";
  const key = vkeysOf(trust.receipt_vkeys).find(
    ({ publicKey }) => thumbprint(publicKey) === receipt.jws.kid,
  );
  if (key === undefined) return "unverified";
  return verifyReceipt(receipt, key, verifySignature) ? "good" : "forged";
}

/**
 * The trust after entries of the log, which are proven and in order. A checkpoint's key that is retired
 * is trusted no more, as long as another one is. Who shows the entries chooses which: an older one about
 * a key, shown again, changes nothing.
 */
export function learn(trust: Trust, entries: readonly EntryOf<"log_key">[]): Trust {
  const states = new Map((trust.states ?? []).map((state) => [state.vkey, state]));
  const receipt = new Set(trust.receipt_vkeys);
  const checkpoint = new Set(trust.checkpoint_vkeys);
  for (const { body, index } of entries) {
    const { purpose, state, vkey } = body;
    const known = states.get(vkey);
    const isNew = known === undefined ? states.size < KEYS_MAX : BigInt(known.index) < index;
    if (!isNew || !isLogKey(trust.log, body)) continue;
    states.set(vkey, { vkey, index: String(index), state });
    if (state === "added") (purpose === "checkpoint" ? checkpoint : receipt).add(vkey);
  }
  if (states.size === 0) return trust;
  const stay = [...checkpoint].filter((vkey) => states.get(vkey)?.state !== "retired");
  const checkpoint_vkeys = stay.length > 0 ? stay : [...checkpoint];
  return { ...trust, checkpoint_vkeys, receipt_vkeys: [...receipt], states: [...states.values()] };
}

export function vkeysOf(texts: readonly string[]): Vkey[] {
  return texts.flatMap((text) => parseVkey(text) ?? []);
}

function isFor(receipt: Receipt, { log, origin }: Trust, results: readonly Result[]): boolean {
  if (receipt.log !== log || receipt.origin !== origin) return false;
  try {
    return coversResults(receipt, results);
  } catch {
    return false; // members that no canonical JSON has
  }
}

/** Names of keys say of which log, and for what they are: no key of one stands in for another. */
function isOfOneLog({ checkpoint_vkeys, log, origin, receipt_vkeys }: Trust): boolean {
  const named = (texts: readonly string[], name: string): boolean =>
    vkeysOf(texts).every((vkey) => vkey.name === name);
  return (
    origin.endsWith(`/${log}`) &&
    named(checkpoint_vkeys, origin) &&
    named(receipt_vkeys, receiptKeyName(origin))
  );
}

function untrusted(message: string): AgentError {
  return new AgentError("untrusted", message);
}
