/** Makes signed reports (BYTES §2) out of what was measured. */
import { type Report, TYP } from "../core/report.ts";
import { instantText } from "../core/unit.ts";
import { type SigningKey, signer } from "./key.ts";
import type { Measurement } from "./usagelog.ts";

/** `counter` runs 1, 2, 3 … per key and log; `issuedAt` in milliseconds since the epoch. */
export type Reporter = (measurement: Measurement, counter: bigint, issuedAt: number) => string;

export function reporter(key: SigningKey, log: string): Reporter {
  const seal = signer(key, TYP.report);
  return (measurement, counter, issuedAt) => {
    const report = {
      ...measurement,
      counter: String(counter),
      issued_at: instantText(issuedAt),
      log,
    } satisfies Report;
    return seal(report);
  };
}
