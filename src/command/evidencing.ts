/** What is said on each log of the service itself: what it runs as, and what was verified each day. */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { encodeBase64 } from "../core/text.ts";
import type { Member } from "../flow/evidence/environment.ts";
import { type Verifying, verifyLoop } from "../flow/evidence/verification.ts";
import { watchEnvironment, watchLoop } from "../flow/evidence/watch-environment.ts";
import type { ServiceVersion } from "../flow/log/announce.ts";
import { sha256 } from "../flow/report/signature.ts";
import type { Logger } from "../telemetry.ts";
import { migrationsFolder } from "./folder.ts";
import { openTrouble } from "./trouble.ts";

/** What the process watches of its own surroundings, for `/readyz` and the metrics. */
export interface Surroundings {
  /** What guards the log otherwise than when this process began. */
  drift: readonly Member[];
  /** Logs whose newest verification has findings. */
  failed: number;
}

export interface Evidencing {
  done: Promise<void>;
  surroundings(): Surroundings;
}

export function startEvidencing(
  options: Omit<Verifying, "hash" | "holder" | "version"> & {
    service: ServiceVersion;
    log: Logger;
  },
): Evidencing {
  const { log, service, signal } = options;
  const environments = openTrouble(log, "environment");
  const verifications = openTrouble(log, "verification");
  const failed = new Set<string>();
  const watch = watchEnvironment({
    ...options,
    build: { ...service, dependencies_sha256: dependenciesHash() },
    onDrift: (members) => {
      if (members.length > 0)
        log.error({ members }, "the database is guarded otherwise than before");
      else log.info("the database is guarded as before");
    },
    onSaid: (name, members) => log.info({ logs: [name], members }, "environment changed"),
    onFailure: environments.failed,
  });
  const watching = watchLoop(watch, {
    signal,
    onFailure: environments.failed,
    onRound: environments.roundEnded,
  });
  const verifying = verifyLoop({
    ...options,
    hash: sha256,
    holder: randomUUID(),
    version: service.version,
    // Where, not what: a value may be a tenant's.
    onFinding: ({ column, index, log: name, table }) => {
      log.error({ logs: [name], index, table, column }, "verification: not as it must be");
    },
    onVerified: (name, { outcome }) => {
      if (outcome === "failed") failed.add(name);
      else failed.delete(name);
    },
    onFailure: verifications.failed,
    onRound: verifications.roundEnded,
  });
  return {
    done: Promise.all([watching, verifying]).then(() => undefined),
    surroundings: () => ({ drift: watch.drift(), failed: failed.size }),
  };
}

/** Base64 of the lock file's SHA-256; of a build that was shipped without one, that of no bytes. */
function dependenciesHash(): string {
  const file = join(dirname(migrationsFolder()), "package-lock.json");
  const bytes = existsSync(file) ? readFileSync(file) : new Uint8Array();
  return encodeBase64(createHash("sha256").update(bytes).digest());
}
