/** A look at the database that nobody waits long for: what is known already is a better answer than none. */
import { Problem } from "../../core/problem.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { limitTransaction } from "../../store/transaction.ts";
import { snapshot } from "../usage/show.ts";

/** A database that says nothing for so long is away. */
const GLANCE_MS = 2_000;
/** The server ends what is not waited for any more: it would keep a connection from those who commit. */
const LIMITS = { lock: GLANCE_MS, statement: GLANCE_MS };

/**
 * In one snapshot.
 *
 * @throws Problem `busy` after two seconds; what comes later is not waited for
 */
export async function glance<T>(sql: Sql, look: (tx: Transaction) => Promise<T>): Promise<T> {
  const looking = snapshot(sql, async (tx) => {
    const [, found] = await Promise.all([limitTransaction(tx, LIMITS), look(tx)]);
    return found;
  });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Problem("busy")), GLANCE_MS);
  });
  try {
    return await Promise.race([looking, late]);
  } finally {
    clearTimeout(timer);
  }
}
