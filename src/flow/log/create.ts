/** A new log for an instance that has none. */
import type { z } from "zod";
import type { MappedRole } from "../../core/control.ts";
import { BODY } from "../../core/entry.ts";
import { DURATION_MS_MAX } from "../../core/judge.ts";
import { Problem } from "../../core/problem.ts";
import { encodeHex } from "../../core/text.ts";
import { IntegerText } from "../../core/unit.ts";
import type { Random } from "../clock.ts";
import type { Keyring } from "../key/keyring.ts";
import { announce, type ServiceVersion } from "./announce.ts";
import type { Appender } from "./append.ts";
import { salt } from "./chain.ts";
import type { Receipt } from "./commit-entry.ts";

const SKEW_MS = "300000"; // 300 s
const DURATION_CAP_MS = "2678400000"; // 31 days
const SKEW_MS_MAX = 86_400_000n; // a day
const LOG_ID_BYTES = 16;

/**
 * What judges reports later is read from the log's entry 0, so its defaults and bounds are chosen here:
 * a cap that caps nothing would let a few absurd builds overflow the sums of honest ones.
 */
export const NewLog = BODY.log.omit({ salt: true }).extend({
  /** Without it `single`, where that need not be said. */
  control: BODY.log.shape.control.exactOptional(),
  skew_ms: atMost(SKEW_MS_MAX).default(SKEW_MS),
  duration_cap_ms: atMost(DURATION_MS_MAX).default(DURATION_CAP_MS),
});
export type NewLog = z.infer<typeof NewLog>;

export interface Creating {
  appender: Appender;
  keyring: Pick<Keyring, "firstKeys">;
  random: Random;
  /** As configured: what a log under dual control begins with, since nobody could approve anything before. */
  roles: readonly MappedRole[];
  /** In production nobody makes a log that one person decides about without saying so. */
  mustSayControl?: boolean;
  /** Announced right behind; without it, at the next start of a service. */
  service?: ServiceVersion;
}

/**
 * @param by opaque id of who makes it
 * @throws Problem `log-exists`; `invalid-request` where `control` must be said; `approver-needed` under dual control, where the configuration knows none
 */
export async function create(
  { appender, keyring, mustSayControl = false, random, roles, service }: Creating,
  by: string,
  input: NewLog,
): Promise<{ log: string } & Receipt> {
  const log = encodeHex(random(LOG_ID_BYTES));
  if (mustSayControl && input.control === undefined) {
    throw new Problem("invalid-request", { members: ["control"] });
  }
  const { control = "single" } = input;
  const body = { ...input, control, salt: salt(random) };
  const mapping = { approval: "", by, grants: [...roles], salt: salt(random) };
  const first = keyring.firstKeys(log);
  const receipt = await (control === "dual"
    ? appender.create(body, log, first, mapping)
    : appender.create(body, log, first));
  // The log stands whether or not this one gets through; the next start announces what is missing.
  if (service !== undefined) {
    await announce({ appender, random }, log, service).catch(() => undefined);
  }
  return { log, ...receipt };
}

function atMost(max: bigint) {
  return IntegerText.refine((text) => BigInt(text) <= max);
}
