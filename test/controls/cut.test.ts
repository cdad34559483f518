/**
 * Controls in code, cut out one by one. Each refuses what it is there for; without its one condition just the same
 * goes through, so that it was this condition and no other.
 */
import { SignJWT } from "jose";
import { expect, test } from "vitest";
import { testKey } from "../signing.ts";
import { type Cut, cutOut, type Load, whole } from "./cut.ts";
import { keepsRole, overreaches, poses, postsLate, rewrites } from "./pure-attacks.ts";

interface Removal extends Cut {
  /** Of docs/controls.md. */
  control: string;
  what: string;
  /** Resolves when it went through. */
  attack(load: Load): Promise<void>;
  refused: RegExp;
}

const NOW = "2026-11-20T12:00:00.000Z";
const SECONDS = Date.parse(NOW) / 1_000;
const ISSUER = "https://id.example";

/** An ID token that approves a proposal of subject 1's. */
function approvedBy(change: object): Removal["attack"] {
  return async (load) => {
    const { judgeIdToken } =
      await load<typeof import("../../src/core/id-token.ts")>("src/core/id-token.ts");
    const times = { exp: SECONDS + 300, iat: SECONDS - 5, auth_time: SECONDS - 20 };
    const claims = { iss: ISSUER, sub: "2", aud: "approvals", nonce: "n", ...times, ...change };
    const grant = { claim: "sub", issuer: ISSUER, namespaces: "*", role: "approver" } as const;
    const grants = ["1", "2"].map((value) => ({ ...grant, value }));
    const proposal = { at: NOW, nonce: "n", proposedAt: "2026-11-20T11:00:00.000Z" };
    const proposer = { issuer: ISSUER, subject: "1" };
    const code = judgeIdToken(claims, { ...proposal, proposer, grants });
    if (code !== undefined) throw new Error(code);
  };
}

async function authenticated(load: Load, change: { audience?: string; nonce?: string }) {
  const { authenticator } = await load<typeof import("../../src/flow/authenticate.ts")>(
    "src/flow/authenticate.ts",
  );
  const { localIssuer } =
    await load<typeof import("../../src/command/issuer.ts")>("src/command/issuer.ts");
  const { privateKey } = testKey(31);
  const issuer = localIssuer(privateKey);
  const grants = [{ role: "operator", logs: "*", namespaces: "*" }];
  const { audience = issuer.audience, ...more } = change;
  const token = await new SignJWT({ grants, ...more })
    .setProtectedHeader({ alg: "Ed25519" })
    .setIssuer(issuer.issuer)
    .setAudience(audience)
    .setSubject("somebody")
    .setIssuedAt()
    .setExpirationTime("1h")
    .sign(privateKey);
  await authenticator([issuer], new Uint8Array(32))(`Bearer ${token}`);
}

async function servesInProduction(load: Load): Promise<void> {
  const { openGate } =
    await load<typeof import("../../src/command/gate.ts")>("src/command/gate.ts");
  const { localIssuer } =
    await load<typeof import("../../src/command/issuer.ts")>("src/command/issuer.ts");
  const { readConfig } = await load<typeof import("../../src/config.ts")>("src/config.ts");
  const { connect } =
    await load<typeof import("../../src/store/connect.ts")>("src/store/connect.ts");
  const { openLog } = await load<typeof import("../../src/telemetry.ts")>("src/telemetry.ts");
  const sql = connect("postgres://nobody@127.0.0.1/nothing");
  const issuers = [localIssuer(testKey(31).privateKey)];
  const foundation = { issuers, principalKey: new Uint8Array(32) };
  const config = { ...readConfig({}), mode: "production" as const };
  const gate = openGate({ config, foundation, sql, redis: undefined, log: openLog("silent") });
  await gate.close();
  await sql.end();
}

async function forges(load: Load): Promise<void> {
  const { verdict } = await load<typeof import("../../src/core/ed25519.ts")>("src/core/ed25519.ts");
  const { verifyBySodium } = await load<typeof import("../signing.ts")>("test/signing.ts");
  const message = new TextEncoder().encode("a report of another hour");
  const forged = testKey(2).sign(message);
  if (!verdict(forged, message, testKey(1).publicKey, verifyBySodium)) throw new Error("forged");
}

async function closesEarly(load: Load): Promise<void> {
  const { closeHouse, openHouse } =
    await load<typeof import("../flow/door.ts")>("test/flow/door.ts");
  const { openDesk } =
    await load<typeof import("../flow/month/desk.ts")>("test/flow/month/desk.ts");
  const house = await openHouse();
  try {
    const desk = await openDesk(house, "early", { since: "2026-10-20T12:00:00.000Z" });
    const build = { job: "1", namespace: "7", minutes: 20, finished: "2026-10-20T10:00:00.000Z" };
    await desk.build(build);
    desk.at("2026-11-05T00:00:00.000Z");
    const told = await desk.close("2026-10-01");
    if (told[0] !== "done") throw new Error(told.join(" "));
  } finally {
    await closeHouse(house);
  }
}

async function setsAlone(load: Load): Promise<void> {
  const { closeHouse, newLog, openHouse } =
    await load<typeof import("../flow/door.ts")>("test/flow/door.ts");
  const { QUOTA } = await load<typeof import("../core/history.ts")>("test/core/history.ts");
  const house = await openHouse();
  try {
    const door = house.open();
    const log = await newLog(door, "alone", { card: "none", control: "dual" });
    await door.appender.control(log, "quota", () => ({ ...QUOTA, approval: "0" }));
  } finally {
    await closeHouse(house);
  }
}

async function forks(load: Load): Promise<void> {
  const { freshDatabase } = await load<typeof import("../postgres.ts")>("test/postgres.ts");
  const guarded = await load<typeof import("../flow/guarded.ts")>("test/flow/guarded.ts");
  const { sealerOf } = await load<typeof import("../flow/chain.ts")>("test/flow/chain.ts");
  const [database, copy] = [await freshDatabase(), await freshDatabase()];
  try {
    const { root } = await guarded.sealedAtTwenty(database, 1);
    const restored = await guarded.restoredAtTen(copy, 1);
    await guarded.ask(sealerOf(copy.writer, root), restored.log);
  } finally {
    await database.drop();
    await copy.drop();
  }
}

async function readsUnseen(load: Load): Promise<void> {
  const http = await load<typeof import("../http/house.ts")>("test/http/house.ts");
  const house = await http.openHouse();
  try {
    const { log, token } = await http.newLog(house, "unseen", 1);
    await house.database.owner`revoke insert on access_log from minutebook_writer`;
    const { json, status } = await http.ask(house, `GET /v1/usage?log=${log}`, { token });
    if (status !== 200) throw new Error(String(json["code"]));
  } finally {
    await house.close();
  }
}

const ID_TOKEN = "src/core/id-token.ts";
const REMOVALS: Removal[] = [
  {
    ...{ control: "AC-1", what: "a report that another key has signed", attack: forges },
    file: "src/core/ed25519.ts",
    text: "return admissibleSignature(signature) && verify(signature, message, publicKey);",
    instead: "return admissibleSignature(signature);",
    refused: /forged/,
  },
  {
    ...{ control: "AC-3", what: "a viewer who opens a log", attack: overreaches },
    file: "src/http/access.ts",
    text: "held.filter(({ role }) => ACCESS[route].includes(role))",
    instead: "held",
    refused: /not-found/,
  },
  {
    ...{ control: "AC-6", what: "an approval by who proposed", file: ID_TOKEN },
    text: 'if (isSamePerson(personOf(claims), proposer)) return "same-person";',
    instead: "",
    attack: approvedBy({ sub: "1" }),
    refused: /same-person/,
  },
  {
    ...{ control: "AC-6", what: "an approval by who is no approver", file: ID_TOKEN },
    text: 'return holdsRole(claims, "approver", grants) ? undefined : "invalid-approval";',
    instead: "return undefined;",
    attack: approvedBy({ sub: "3" }),
    refused: /invalid-approval/,
  },
  {
    ...{ control: "AC-6", what: "an approval by a sign-in of eleven minutes ago", file: ID_TOKEN },
    text: 'if (!isFresh(claims, epochMs(at), epochMs(proposedAt))) return "invalid-approval";',
    instead: "",
    attack: approvedBy({ iat: SECONDS - 660, auth_time: SECONDS - 660 }),
    refused: /invalid-approval/,
  },
  {
    ...{ control: "AC-6", what: "an approval of another proposal", file: ID_TOKEN },
    text: "claims.nonce !== nonce || ",
    instead: "",
    attack: approvedBy({ nonce: "m" }),
    refused: /invalid-approval/,
  },
  {
    ...{ control: "AC-6", what: "a limit that names an approval which is none", attack: setsAlone },
    file: "src/flow/control/decided.ts",
    text: 'if (!decided) throw new Problem("approval-required");',
    instead: "",
    refused: /approval-required/,
  },
  {
    ...{ control: "AC-7", what: "a system by a name of the service's own", attack: poses },
    file: "src/core/admit-control.ts",
    text: 'if (sources.some((source) => source.startsWith(OWN_SOURCE))) misshapen("mode", "sources");',
    instead: "",
    refused: /invalid-request/,
  },
  {
    ...{ control: "AC-8", what: "a role that the log gives nobody", attack: keepsRole },
    file: "src/flow/access/mapping.ts",
    text: "[{ ...holding, except }]",
    instead: "[holding]",
    refused: /holds nothing/,
  },
  {
    ...{ control: "AC-9", what: "a token for another service" },
    file: "src/flow/authenticate.ts",
    text: "audience: issuer.audience,",
    instead: "",
    attack: (load) => authenticated(load, { audience: "another" }),
    refused: /unauthenticated/,
  },
  {
    ...{ control: "AC-9", what: "an approval's ID token as a bearer token" },
    file: "src/flow/authenticate.ts",
    text: 'if ("nonce" in payload) throw new Error("authenticate: an ID token");',
    instead: "",
    attack: (load) => authenticated(load, { nonce: "n" }),
    refused: /unauthenticated/,
  },
  {
    ...{ control: "AC-9", what: "development's issuer in production", attack: servesInProduction },
    file: "src/command/gate.ts",
    text: 'config.mode === "production" && ',
    instead: "false && ",
    refused: /development's own issuer/,
  },
  {
    ...{ control: "AC-10", what: "a read that cannot be written down", attack: readsUnseen },
    file: "src/http/router.ts",
    text: "await accesses.record(row, use);",
    instead: "void accesses.record(row, use).catch(() => undefined);",
    refused: /busy/,
  },
  {
    ...{
      control: "OP-2",
      what: "a database that was restored to before its archive",
      attack: forks,
    },
    file: "src/flow/log/guard.ts",
    text: "await assertAgreeing(tx, log, head, known.get(log));",
    instead: "",
    refused: /log-behind/,
  },
  {
    ...{ control: "IN-4", what: "late usage in a month that is closed", attack: postsLate },
    file: "src/core/month.ts",
    text: "return open > usageMonth ? open : usageMonth;",
    instead: "return usageMonth;",
    refused: /posted to 2026-11-01/,
  },
  {
    ...{ control: "IT-1", what: "an entry that was altered in its bundle", attack: rewrites },
    file: "audit/archive/walk.ts",
    text: 'findings.add("entry-altered", { index }, "its hash is not the one in the tile");',
    instead: "",
    refused: /^entry-altered$/,
  },
  {
    ...{ control: "PC-1", what: "a month closed past its preconditions", attack: closesEarly },
    file: "src/flow/month/close.ts",
    text: 'if (missing.length > 0) throw new Problem("month-not-ready", { missing });',
    instead: "",
    refused: /month-not-ready/,
  },
];

test.each(REMOVALS)("$control: $what", async ({ attack, refused, ...cut }) => {
  await expect(attack(whole)).rejects.toThrow(refused);
  const without = await cutOut(cut);
  try {
    await attack(without.load);
  } finally {
    await without.close();
  }
});

test("a condition that does not stand where it is to be cut is an error, and no control that holds", async () => {
  const without = await cutOut({ file: ID_TOKEN, text: "no such condition", instead: "" });
  await expect(without.load(ID_TOKEN)).rejects.toThrow("stands there 0 times");
  await without.close();
});
