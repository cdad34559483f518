/** Is this process able to do its work, and what should an operator know besides? */
import type { ProblemCode } from "../core/problem.ts";
import type { Sql } from "../store/connect.ts";
import type { LateExports } from "../store/late-exports.ts";
import { countLogs } from "../store/logs.ts";
import { requireCurrentSchema } from "../store/migrations.ts";
import { assertServiceRole } from "../store/privileges.ts";
import { replication } from "../store/replication.ts";
import type { Anchors } from "./log/anchor.ts";
import type { SealGuard } from "./log/guard.ts";
import type { SealLag } from "./log/seal-loop.ts";

/** Read by anyone, so it names no log and quotes no error. */
export interface Readiness {
  ready: boolean;
  /** Code of what keeps the database from being used, or `ok`. */
  database: string;
  /** How many logs are refused now, by code. */
  refused: Partial<Record<ProblemCode, number>>;
  seal: { logs: number; entries: string; lag_ms: number };
  /** `failing`: the last refresh of usage broke off; reports are taken in all the same. */
  rollups: Rollups;
  /** `unknown` while the database does not answer. */
  replication: "synchronous" | "missing" | "unknown";
  anchors: Anchors;
  /** `unavailable`: nothing can be sealed or promised, so nothing is taken. */
  signer: "available" | "unavailable";
  /** `away`: quota is decided by what this process knows; `none`: no Redis is configured. */
  redis: Redis;
  /** How many logs' access nobody has reviewed for more than a quarter. */
  reviews: { overdue: number };
  /** How many kinds of guards (grants, triggers) are otherwise than when this process began. */
  environment: { drift: number };
  /** How many logs did not pass when they were last verified by this process. */
  verification: { failed: number };
  /** How many files that the service makes by itself are not made, or not where they are to be. */
  exports: LateExports;
}

export type Redis = "up" | "away" | "none";

export type Rollups = "current" | "failing";

export interface Watching {
  /** As writer: what is asked is whether that one can write. */
  sql: Sql;
  guard: SealGuard;
  sealLag: () => SealLag;
  rollups: () => Rollups;
  anchors: () => Anchors;
  /** Whether signatures are to be had. */
  signs: () => boolean;
  redis: () => Redis;
  reviewsOverdue: () => number;
  surroundings: () => { drift: readonly string[]; failed: number };
  lateExports: () => LateExports;
  /** The migrations' folder. */
  migrations: string;
}

/**
 * Not ready: the database does not answer, is of another schema, or lets this role do too much; the
 * archive or the signer cannot be reached; or no log can be written. One refused log among others is said, and
 * keeps nobody else's reports out.
 */
export async function ready(watching: Watching): Promise<Readiness> {
  const { sql, guard, sealLag, rollups, anchors, signs, redis, migrations, reviewsOverdue } =
    watching;
  const { drift, failed } = watching.surroundings();
  const { entries, logs, ms } = sealLag();
  const codes = [...guard.state().values()];
  const known = {
    refused: counted(codes),
    seal: { logs, entries: String(entries), lag_ms: ms },
    rollups: rollups(),
    anchors: anchors(),
    signer: signs() ? "available" : "unavailable",
    redis: redis(),
    reviews: { overdue: reviewsOverdue() },
    environment: { drift: drift.length },
    verification: { failed },
    exports: watching.lateExports(),
  } as const;
  try {
    await assertServiceRole(sql);
    await requireCurrentSchema(sql, migrations);
    const writable = codes.length === 0 || BigInt(codes.length) < (await countLogs(sql));
    const reached = !codes.includes("archive-unavailable") && signs();
    const waits = await replication(sql);
    return { ready: writable && reached, database: "ok", ...known, replication: waits };
  } catch (error) {
    return { ready: false, database: codeOf(error), ...known, replication: "unknown" };
  }
}

function counted(codes: readonly ProblemCode[]): Readiness["refused"] {
  const counts: Readiness["refused"] = {};
  for (const code of codes) counts[code] = (counts[code] ?? 0) + 1;
  return counts;
}

/** Our own codes are public; what PostgreSQL or the network says is not. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return /^[a-z]+(?:-[a-z]+)+$/.test(code) ? code : "unavailable";
}
