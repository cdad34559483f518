/** What a command stands on that writes to logs itself: beside the service, or while it is down. */
import { randomBytes } from "node:crypto";
import { readConfig } from "../config.ts";
import type { Sha256 } from "../core/hash.ts";
import type { Vkey } from "../core/note.ts";
import { type Random, systemClock } from "../flow/clock.ts";
import { openKeyring } from "../flow/key/keyring.ts";
import { openGuard } from "../flow/log/guard.ts";
import type { Sealer } from "../flow/log/seal.ts";
import { sha256 } from "../flow/report/signature.ts";
import { connect } from "../store/connect.ts";
import { requireCurrentSchema } from "../store/migrations.ts";
import { assertServiceRole } from "../store/privileges.ts";
import { migrationsFolder } from "./folder.ts";
import { findGround } from "./foundation.ts";

export type Writing = Sealer & {
  hash: Sha256;
  random: Random;
  /** Of the policy that the service follows. */
  witnesses: readonly Vkey[];
};

/** One holds the transaction, another reads beside it. */
const CONNECTIONS = 4;
const END_SECONDS = 5;

/**
 * As the service's own role, with the service's keys and archive.
 *
 * @throws ConfigError, CommandError, UnsafeRoleError, MigrationError
 */
export async function withWriter<T>(
  data: string | undefined,
  work: (writing: Writing) => Promise<T>,
): Promise<T> {
  const config = readConfig();
  const ground = await findGround(config, data, (line) => process.stderr.write(`${line}\n`));
  const sql = connect(ground.writerUrl, { max: CONNECTIONS, name: "minutebook-command" });
  try {
    await assertServiceRole(sql);
    await requireCurrentSchema(sql, migrationsFolder());
    const { archive, keys: held } = ground;
    const parts = { sql, archive, clock: systemClock, hash: sha256 };
    const { signerFor } = openKeyring({ serviceName: config.serviceName, held, ...parts });
    const random: Random = (bytes) => new Uint8Array(randomBytes(bytes));
    const guard = openGuard({ ...parts, signerFor });
    const witnesses = (config.witnessPolicy?.witnesses ?? []).map(({ vkey }) => vkey);
    return await work({ ...parts, signerFor, guard, random, witnesses });
  } finally {
    await sql.end({ timeout: END_SECONDS });
    await ground.stop();
  }
}
