/** Signs what a request was answered: the promise that agents hold the log to. */
import type { Sha256 } from "../../core/hash.ts";
import { signedCompact } from "../../core/jws.ts";
import { type ReceiptResult, receiptInput } from "../../core/receipt.ts";
import { encodeUtf8 } from "../../core/text.ts";
import { instantText } from "../../core/unit.ts";
import type { Clock } from "../clock.ts";
import type { Keyring } from "../key/keyring.ts";

export interface Receipts {
  /**
   * Asked before anything of a request is accepted: who cannot promise takes nothing.
   *
   * @throws Problem `signer-unavailable`, `busy`
   */
  open(log: string): Promise<Receipting>;
}

/**
 * The receipt over these results. Undefined where the signer failed meanwhile: what was committed is
 * answered all the same, and the same reports again bring the receipt.
 */
export type Receipting = (results: readonly ReceiptResult[]) => Promise<string | undefined>;

export function openReceipts(options: {
  keyring: Keyring;
  clock: Clock;
  hash: Sha256;
  /** An answer went out without its receipt. */
  failed?: (error: unknown) => void;
}): Receipts {
  const { keyring, clock, hash, failed } = options;
  return {
    open: async (log) => {
      const { origin, kid, key } = await keyring.receiptSigner(log);
      return async (results) => {
        const issued_at = instantText(clock.now());
        const input = receiptInput(kid, { issued_at, log, origin }, results, hash);
        try {
          return signedCompact(input, await key.sign(encodeUtf8(input)));
        } catch (error) {
          failed?.(error);
          return undefined;
        }
      };
    },
  };
}
