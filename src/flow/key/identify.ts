/** The name of a log and the keys that verify it, as those who begin to follow it are told. */
import type { Keyring } from "./keyring.ts";
import type { StandingKey } from "./standing.ts";

export interface LogIdentity {
  /** Of its checkpoints; the key names begin with it. */
  origin: string;
  /** Of two in force the older: whoever has it can follow the log to the other, and not back. */
  vkey: string;
  receipt_vkey: string;
}

/** In the order of the logs. @throws Problem `busy` */
export async function identify(keyring: Keyring, logs: readonly string[]): Promise<LogIdentity[]> {
  const all = await keyring.standing(logs);
  return all.map(({ origin, checkpoint, receipt }) => {
    return { origin, vkey: oldest(checkpoint), receipt_vkey: oldest(receipt) };
  });
}

function oldest(keys: readonly StandingKey[]): string {
  const found = keys.find(({ state }) => state === "in_force");
  if (found === undefined) throw new Error("identify: a log without a key");
  return found.vkey;
}
