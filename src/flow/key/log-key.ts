/** The keys that a log is signed with: added and retired by entries, shown with those that could be. */
import type { z } from "zod";
import { BODY, type Body } from "../../core/entry.ts";
import type { Purpose } from "../../core/log-key.ts";
import { Problem } from "../../core/problem.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readHead } from "../../store/heads.ts";
import { readSeal } from "../../store/seals.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";
import type { Keyring } from "./keyring.ts";
import type { KeyState, StandingKey } from "./standing.ts";

export const NewLogKey = BODY.log_key.pick({ purpose: true, state: true, vkey: true });
export type NewLogKey = z.infer<typeof NewLogKey>;

/**
 * Answered by the entry that says so already, if one does. From the next seal on checkpoints carry the
 * signatures of just the keys in force.
 *
 * @param by opaque id of the principal who asks
 * @throws Problem `not-found` for a log, and to retire what is not in force; `key-not-held`,
 *   `key-in-use`, `key-has-ended`, `last-log-key`, `successor-unsealed`, `approval-required`
 */
export async function changeLogKey(
  { appender, keyring, random }: { appender: Appender; keyring: Keyring; random: Random },
  { log, by }: { log: string; by: string },
  input: NewLogKey,
): Promise<Receipt> {
  const { purpose, state, vkey } = input;
  const body = { ...input, approval: "", by, salt: salt(random) };
  const receipt = await appender.control(log, "log_key", async (_, __, tx) => {
    const { entries } = await keyring.standingIn(tx, log);
    const said = entries.named(purpose).find((key) => key.vkey === vkey && key.state === state);
    if (said !== undefined) return said.index;
    await assertNextLogKey(keyring, { tx, log }, body);
    return body;
  });
  keyring.forget(log);
  return receipt;
}

/** @throws Problem as `changeLogKey` does of one that nothing says already */
export async function assertNextLogKey(
  keyring: Pick<Keyring, "standingIn">,
  { tx, log }: { tx: Transaction; log: string },
  body: Body<"log_key">,
): Promise<void> {
  const { purpose, state, vkey } = body;
  const { entries, keys } = await keyring.standingIn(tx, log);
  if (state === "added") assertAddable(keys[purpose], vkey);
  else assertRetirable(keys[purpose], vkey, (await readSeal(tx, log)).size);
  entries.assertNext(body);
}

export interface ShownLogKey {
  purpose: Purpose;
  vkey: string;
  state: KeyState;
  /** Of the newest entry that names it. */
  index?: string;
  /** The service that answers can sign with it. */
  held: boolean;
}

/** @throws Problem `not-found`, `busy` */
export async function showLogKeys(
  { keyring, sql }: { keyring: Keyring; sql: Sql },
  log: string,
): Promise<{ log: string; origin: string; keys: ShownLogKey[] }> {
  const [keys] = await keyring.standing([log]);
  if (keys === undefined || (await readHead(sql, log)) === undefined)
    throw new Problem("not-found");
  const shown = (["checkpoint", "receipt"] as const).flatMap((purpose) =>
    keys[purpose].map(({ vkey, state, index, key }): ShownLogKey => {
      const place = index === undefined ? {} : { index: String(index) };
      return { purpose, vkey, state, ...place, held: key !== undefined };
    }),
  );
  return { log, origin: keys.origin, keys: shown };
}

function assertAddable(keys: readonly StandingKey[], vkey: string): void {
  const standing = keys.find((key) => key.vkey === vkey);
  if (standing?.key === undefined) throw new Problem("key-not-held");
  if (standing.state === "in_force") throw new Problem("key-in-use");
}

/**
 * Whoever trusts only the key that goes must have been led to one that stays: its entry was sealed
 * while the other was in force.
 */
function assertRetirable(keys: readonly StandingKey[], vkey: string, sealed: bigint): void {
  const standing = keys.find((key) => key.vkey === vkey);
  if (standing === undefined) throw new Problem("key-not-held");
  if (standing.state === "held") throw new Problem("not-found");
  const others = keys.filter((key) => key.state === "in_force" && key !== standing);
  const staying = others.filter(({ key }) => key !== undefined);
  if (others.length > 0 && staying.length === 0) throw new Problem("key-not-held");
  const led = staying.some(({ index }) => index === undefined || index < sealed);
  if (staying.length > 0 && !led) throw new Problem("successor-unsealed");
}
