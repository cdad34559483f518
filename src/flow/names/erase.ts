/** A name is erased, and with it what was made with names before: those exports end with the next round. */
import type { Sql } from "../../store/connect.ts";
import { eraseName, type NamedId } from "../../store/names.ts";
import type { Clock } from "../clock.ts";

export interface Erased extends NamedId {
  log: string;
  /** False: there was no such name. */
  erased: boolean;
}

export async function erase(
  { sql, clock }: { sql: Sql; clock: Clock },
  of: NamedId & { log: string },
): Promise<Erased> {
  return { ...of, erased: await eraseName(sql, of, new Date(clock.now())) };
}
