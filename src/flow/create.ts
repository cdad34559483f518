/** A new log for an instance that has none. */
import type { z } from "zod";
import { BODY } from "../core/entry.ts";
import { encodeHex } from "../core/text.ts";
import { IntegerText } from "../core/unit.ts";
import type { Appender } from "./append.ts";
import { salt } from "./chain.ts";
import type { Random } from "./clock.ts";
import type { Receipt } from "./commit.ts";

const SKEW_MS = "300000"; // 300 s
const DURATION_CAP_MS = "2678400000"; // 31 days
const LOG_ID_BYTES = 16;

/** What judges reports later is read from the log's entry 0, so its defaults are chosen here. */
export const NewLog = BODY.log.omit({ salt: true }).extend({
  control: BODY.log.shape.control.default("single"),
  skew_ms: IntegerText.default(SKEW_MS),
  duration_cap_ms: IntegerText.default(DURATION_CAP_MS),
});
export type NewLog = z.infer<typeof NewLog>;

/** @throws Problem `log-exists` */
export async function create(
  { appender, random }: { appender: Appender; random: Random },
  input: NewLog,
): Promise<{ log: string } & Receipt> {
  const log = encodeHex(random(LOG_ID_BYTES));
  return { log, ...(await appender.create({ ...input, salt: salt(random) }, log)) };
}
