/**
 * Whose key is whose, for the whole process. What was found is known for ever (a kid names one key, and
 * an enrolment never goes away); what was not found is asked for again each time, because another
 * process may enrol it at any moment.
 */
import type { Sql } from "../../store/connect.ts";
import { readKeys } from "../../store/keys.ts";
import { spoken } from "../log/failure.ts";

export interface Directory {
  /** Public keys of those kids that are enrolled anywhere. @throws Problem `busy` */
  find(kids: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>>;
  /**
   * The log that accounts for what this key signed for `log`: that one if the key is enrolled there,
   * otherwise the first that it was enrolled in. At once if that is known.
   *
   * @throws Problem `busy`; Error for a kid that is enrolled nowhere
   */
  home(kid: string, log: string | undefined): string | Promise<string>;
}

interface Known {
  publicKey: Uint8Array;
  /** The first enrolment first. */
  logs: readonly string[];
}

export function openDirectory(sql: Sql): Directory {
  const known = new Map<string, Known>();

  async function read(kids: readonly string[]): Promise<void> {
    const logs = new Map<string, string[]>();
    const rows = await readKeys(sql, kids).catch((error: unknown) => {
      throw spoken(error);
    });
    for (const { kid, log, publicKey } of rows) {
      const list = logs.get(kid) ?? [];
      list.push(log);
      logs.set(kid, list);
      known.set(kid, { publicKey, logs: list });
    }
  }

  function enrolled(kid: string, log: string | undefined): string | undefined {
    return known.get(kid)?.logs.find((other) => other === log);
  }

  function first(kid: string): string {
    const log = known.get(kid)?.logs[0];
    if (log === undefined) throw new Error("directory: a key of no log");
    return log;
  }

  return {
    async find(kids) {
      const missing = kids.filter((kid) => !known.has(kid));
      if (missing.length > 0) await read(missing);
      const found = new Map<string, Uint8Array>();
      for (const kid of kids) {
        const key = known.get(kid);
        if (key !== undefined) found.set(kid, key.publicKey);
      }
      return found;
    },
    home: (kid, log) => {
      const there = enrolled(kid, log);
      return there ?? read([kid]).then(() => enrolled(kid, log) ?? first(kid));
    },
  };
}
