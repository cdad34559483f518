/** Attacks on controls that need no database: each resolves when it went through (cut.test.ts). */
import type { Principal } from "../../src/flow/access/grant.ts";
import type { Load } from "./cut.ts";

type Core = typeof import("../core/history.ts");

/** A viewer asks for what is an operator's. */
export async function overreaches(load: Load): Promise<void> {
  const { assertRole, callerOf } =
    await load<typeof import("../../src/http/access.ts")>("src/http/access.ts");
  const grants: Principal["grants"] = [{ role: "viewer", logs: "*", namespaces: "*" }];
  const viewer = { id: "p_viewer", issuer: "https://id.example", subject: "1", grants };
  assertRole(callerOf("POST /v1/logs", viewer, { rolesEver: async () => [] }));
}

/** A log is told of a system that goes by a name of the service's own. */
export async function poses(load: Load): Promise<void> {
  const { History, LONG_AGO, QUOTA } = await load<Core>("test/core/history.ts");
  const { by, salt } = QUOTA;
  const said = { approval: "", by, salt, billing_from: LONG_AGO, control: "dual" } as const;
  new History().write("mode", { ...said, sources: ["minutebook/agent"] });
}

/** Configuration gives a role on a log whose own mapping gives it to nobody. */
export async function keepsRole(load: Load): Promise<void> {
  const { holdingsOf, standingOf } = await load<typeof import("../../src/flow/access/mapping.ts")>(
    "src/flow/access/mapping.ts",
  );
  const { covers } = await load<typeof import("../../src/flow/access/grant.ts")>(
    "src/flow/access/grant.ts",
  );
  const log = "a".repeat(32);
  const who = { id: "p_left", issuer: "https://id.example", subject: "1", claims: {} };
  const configured = [{ role: "finance", logs: "*", namespaces: "*" }] as const;
  const standing = standingOf(new Map([[log, []]]), new Map());
  const held = holdingsOf({ ...who, configured, isLocal: false }, standing) ?? [];
  if (!held.some((holding) => covers(holding, log))) throw new Error("holds nothing");
}

/** Usage that is late is posted to its own month, which is closed. */
export async function postsLate(load: Load): Promise<void> {
  const { History } = await load<Core>("test/core/history.ts");
  const history = new History();
  history.close("2026-10-01");
  const month = history.prefix.postingMonth("2026-10-01");
  if (month !== "2026-10-01") throw new Error(`posted to ${month}`);
}

/** An archived entry says something else than its tile has the hash of. */
export async function rewrites(load: Load): Promise<void> {
  const { auditFiles, filesOf, said } =
    await load<typeof import("../audit/archive.ts")>("test/audit/archive.ts");
  const { longLog } = await load<typeof import("../audit/honest.ts")>("test/audit/honest.ts");
  const log = longLog(16);
  const text = Buffer.from(log.entries[12] ?? []).toString();
  log.entries[12] = Buffer.from(text.replace('"schema_sha256":"A', '"schema_sha256":"B'));
  const { codes } = said(await auditFiles(filesOf(log)));
  if (codes.length > 0) throw new Error(codes.join(" "));
}
