/** Logs made without the door, for tests of what reads quota from them; and one pool that changes its database. */
import type { Body } from "../../../src/core/entry.ts";
import type { Sql, Transaction } from "../../../src/store/connect.ts";
import type { Agent } from "../../builds.ts";
import { TestLedger } from "../../ledger.ts";
import { HOSTED, OWN } from "../history.ts";

const SALT = `${"A".repeat(22)}==`;
const SAID = { approval: "", by: "p_test", salt: SALT, source: "portal" } as const;

export const LIMIT: Body<"quota"> = {
  ...SAID,
  beyond: "stop",
  cap: "",
  effective_from: "2026-01-01T00:00:00.000Z",
  grace_minutes: "0",
  monthly_minutes: "10",
  namespace_id: "1",
  source_version: "1",
};

export const PACK: Body<"pack"> = {
  ...SAID,
  expires_in: "2027-09-01",
  minutes: "5",
  namespace_id: "1",
  pack_id: "order 1",
  purchased_in: "2026-10-01",
  source_version: "1",
};

let logs = 0;

function newId(): string {
  logs += 1;
  return logs.toString(16).padStart(32, "0");
}

/** With cards, and an agent for hosted runners and the customer's own. The same id gives the same log. */
export function newLedger(log = newId()): { ledger: TestLedger; agent: Agent } {
  const ledger = new TestLedger(log);
  ledger.card("hosted", { small: "1/3", "*": "2" });
  ledger.card("self_managed", { "*": "1" });
  return { ledger, agent: ledger.enrol(1, [HOSTED, OWN]) };
}

export function withdraw(ledger: TestLedger, closing: bigint): void {
  ledger.append("month_closing_withdrawn", {
    ...{ approval: "", by: "p_test", salt: SALT },
    closing: String(closing),
  });
}

export interface Switch {
  sql: Sql;
  to(sql: Sql): void;
  /** Of each transaction so far the tables that it read. */
  readonly read: Set<string>[];
}

function noting(tx: Transaction, tables: Set<string>): Transaction {
  return new Proxy(tx, {
    apply: (query, self, parts) => {
      const [text] = parts;
      const named = String(text).matchAll(/from ([a-z_]+)/g);
      for (const [, table = ""] of named) tables.add(table);
      return Reflect.apply(query, self, parts);
    },
  });
}

/** What stands behind an address that does not change, as after a failover or a restore. */
export function switchable(first: Sql): Switch {
  let current = first;
  const read: Set<string>[] = [];
  const sql = new Proxy(first, {
    apply: (_, self, parts) => Reflect.apply(current, self, parts),
    get: (_, name) => {
      if (name !== "begin") return Reflect.get(current, name);
      return (mode: string, work: (tx: Transaction) => Promise<unknown>) => {
        const tables = new Set<string>();
        read.push(tables);
        return current.begin(mode, (tx) => work(noting(tx, tables)));
      };
    },
  });
  return {
    sql,
    read,
    to: (next) => {
      current = next;
    },
  };
}
