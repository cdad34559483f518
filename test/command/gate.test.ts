import { expect, test } from "vitest";
import { openGate } from "../../src/command/gate.ts";
import { localIssuer } from "../../src/command/issuer.ts";
import { readConfig } from "../../src/config.ts";
import { ConfigError } from "../../src/config-error.ts";
import { connect } from "../../src/store/connect.ts";
import { openLog } from "../../src/telemetry.ts";
import { testKey } from "../signing.ts";

test("production takes no token of development's own issuer, and says so before it serves", async () => {
  const issuers = [localIssuer(testKey(31).privateKey)];
  const sql = connect("postgres://nobody@127.0.0.1/nothing");
  const parts = { sql, redis: undefined, log: openLog("silent") };
  const foundation = { issuers, principalKey: new Uint8Array(32) };
  const open = (mode: "development" | "production") =>
    openGate({ ...parts, foundation, config: { ...readConfig({}), mode } });
  expect(() => open("production")).toThrow(ConfigError);
  expect(() => open("production")).toThrow("no tokens of development's own issuer");
  await open("development").close();
  await sql.end();
});
