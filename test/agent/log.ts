/**
 * An honest log in memory, with receipts and proofs as the protocol has them, for the service of these
 * tests. A test makes it lie by changing what it says, not how it comes to say it.
 */
import { formatCheckpoint } from "../../src/core/checkpoint.ts";
import { thumbprint } from "../../src/core/ed25519.ts";
import { type Body, type Entry, encodeEntry, GENESIS_PREV } from "../../src/core/entry.ts";
import { leafHash } from "../../src/core/hash.ts";
import { signedCompact } from "../../src/core/jws.ts";
import { formatVkey, signNote } from "../../src/core/note.ts";
import { consistencyProof, inclusionProof, leafNodes, treeRoot } from "../../src/core/proof.ts";
import { type ReceiptResult, receiptInput, receiptKeyName } from "../../src/core/receipt.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { instantText } from "../../src/core/unit.ts";
import { type TestKey, testKey } from "../signing.ts";

export interface Proved {
  checkpoint: string;
  proofs: { index: string; entry?: string; hashes: string[] }[];
  consistency?: string[];
  keys: { index: string; entry: string; hashes: string[] }[];
}

const texts = (hashes: readonly Uint8Array[]): string[] => hashes.map(encodeBase64);

export class TestLog {
  readonly log: string;
  readonly origin: string;
  entries: Uint8Array[] = [];
  /** How many of the entries the newest checkpoint covers. */
  sealed = 0;
  #appended = 0;
  checkpointKeys = [testKey(71)];
  receiptKey = testKey(72);

  constructor(log: string, origin = `log.example/${log}`) {
    this.log = log;
    this.origin = origin;
  }

  get vkey(): string {
    return this.vkeyOf(this.checkpointKeys[0] ?? testKey(71));
  }

  get receiptVkey(): string {
    return this.receiptVkeyOf(this.receiptKey);
  }

  vkeyOf(key: TestKey): string {
    return formatVkey(this.origin, key.publicKey);
  }

  receiptVkeyOf(key: TestKey): string {
    return formatVkey(receiptKeyName(this.origin), key.publicKey);
  }

  append(bytes: Uint8Array): { index: string; leaf: string } {
    this.entries.push(bytes);
    return { index: String(this.entries.length - 1), leaf: encodeBase64(leafHash(bytes)) };
  }

  /** What an honest log makes of a report. */
  appendReport(
    jws: string,
    kind: "usage" | "conflict" | "hold" = "usage",
  ): { index: string; leaf: string } {
    const conflict = { jws, stands: "0" };
    const body = kind === "usage" ? usage(jws) : conflict;
    const entry = { ...this.#next(), kind, body: kind === "hold" ? hold(jws) : body };
    return this.append(encodeEntry(entry as Entry));
  }

  appendKey(purpose: Body<"log_key">["purpose"], state: "added" | "retired", vkey: string): void {
    const salt = encodeBase64(new Uint8Array(16));
    const body: Body<"log_key"> = { approval: "", by: "somebody", purpose, salt, state, vkey };
    this.append(encodeEntry({ ...this.#next(), body, kind: "log_key" }));
  }

  /** Each at another instant: no two entries are the same bytes, also not on either side of a rollback. */
  #next(): Pick<Entry, "at" | "index" | "log" | "prev"> {
    const at = instantText(this.#appended++);
    return { at, index: BigInt(this.entries.length), log: this.log, prev: GENESIS_PREV };
  }

  seal(): void {
    this.sealed = this.entries.length;
  }

  receipt(results: readonly ReceiptResult[], now: number, key = this.receiptKey): string {
    const { log, origin } = this;
    const statement = { issued_at: instantText(now), log, origin };
    const input = receiptInput(thumbprint(key.publicKey), statement, results);
    return signedCompact(input, key.sign(encodeUtf8(input)));
  }

  checkpoint(size = this.sealed): string {
    const root = treeRoot(BigInt(size), this.#nodes);
    const text = formatCheckpoint({ origin: this.origin, size: BigInt(size), root });
    const name = this.origin;
    return signNote(
      text,
      this.checkpointKeys.map((key) => ({ name, publicKey: key.publicKey, sign: key.sign })),
    );
  }

  /** The answer of `POST /v1/receipts/prove`, under the checkpoint of `size`. */
  prove(results: readonly { index?: string }[], since = "0", size = this.sealed): Proved {
    const indices = new Set(results.flatMap(({ index }) => index ?? []));
    const covered = [...indices].filter((index) => Number(index) < size);
    const consistent = BigInt(since) > 0n && BigInt(since) <= BigInt(size);
    const inclusion = (index: string): string[] =>
      texts(inclusionProof(BigInt(index), BigInt(size), this.#nodes));
    return {
      checkpoint: this.checkpoint(size),
      proofs: covered.map((index) => {
        const entry = encodeBase64(this.entries[Number(index)] ?? new Uint8Array());
        return { index, entry, hashes: inclusion(index) };
      }),
      ...(consistent && {
        consistency: texts(consistencyProof(BigInt(since), BigInt(size), this.#nodes)),
      }),
      keys: this.entries.slice(0, size).flatMap((bytes, i) => {
        if (!Buffer.from(bytes).includes('"kind":"log_key"')) return [];
        const index = String(i);
        return [{ index, entry: encodeBase64(bytes), hashes: inclusion(index) }];
      }),
    };
  }

  get #nodes() {
    return leafNodes(this.entries.map((bytes) => leafHash(bytes)));
  }
}

function hold(jws: string): Body<"hold"> {
  return { code: "over-cap", jws };
}

function usage(jws: string): Body<"usage"> {
  return {
    billable: false,
    billing_month: "2026-09-01",
    card: "1",
    class: "default",
    compute_ms: "1.000000",
    enrolment: "1",
    factor: "1/1",
    jws,
    limit: "",
    machine_type: "small",
    not_billable: "self_managed",
    tracking: "self_managed",
    usage_month: "2026-09-01",
  };
}
