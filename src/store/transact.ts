/** `sql.begin` for a world in which connections die. */
import type { Sql, Transaction } from "./connect.ts";

/**
 * Runs `work` in a transaction. Where postgres.js 3.4.9 only rejects when the connection dies, and
 * lets the work go on, here it is over for the work too:
 *
 * - A query after the death throws. postgres.js would write to a socket that is gone, outside of any
 *   promise, which ends the process; or, the connection being made anew meanwhile, would run the query
 *   in another session, outside of any transaction and without its locks.
 * - This rejects only when the work has stopped, so that nobody begins anew beside it.
 *
 * @param mode such as `isolation level repeatable read read only`
 */
export async function transact<T>(
  sql: Sql,
  work: (tx: Transaction) => Promise<T>,
  mode = "",
): Promise<T> {
  let over = false;
  let stopped: Promise<unknown> = Promise.resolve();
  const fenced = (tx: Transaction): Transaction =>
    new Proxy(tx, {
      apply: (query, self, parts) => {
        if (over) throw new Error("transaction: its connection is gone");
        return Reflect.apply(query, self, parts);
      },
    });

  try {
    return (await sql.begin(mode, (tx) => {
      const working = work(fenced(tx));
      stopped = working.catch(() => undefined);
      return answered(working, () => over);
    })) as T;
  } catch (error) {
    over = true;
    await stopped;
    throw error;
  }
}

/**
 * The work's outcome, or none at all once the transaction is over: postgres.js would answer it with a
 * COMMIT or ROLLBACK on the dead connection.
 */
function answered<T>(working: Promise<T>, isOver: () => boolean): Promise<T> {
  return new Promise((resolve, reject) => {
    working.then(
      (value) => {
        if (!isOver()) resolve(value);
      },
      // A turn later: a death is told to the query in flight first, and to `begin` right after it.
      (error: unknown) => {
        setImmediate(() => {
          if (!isOver()) reject(error);
        });
      },
    );
  });
}
