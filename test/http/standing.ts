/** Entries that stand on a log, so that there is something to name. */
import type { Body } from "../../src/core/entry.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { CARD } from "../core/history.ts";

const DECIDED = { by: "p", reason: "test", salt: CARD.salt, ticket: "1" };

export const PROPOSAL: Body<"proposal"> = {
  ...DECIDED,
  action: "visibility",
  content: '{"public":true}',
  effect: "{}",
  expires_at: "2026-11-21T00:00:00.000Z",
  proposer: { issuer: "https://id.example", subject: "1" },
};

/** Without lines: all of it stands. */
export const RUN: Body<"credit_run"> = {
  ...DECIDED,
  approval: "",
  form: "zero_rate",
  lines: "0",
  lines_sha256: encodeBase64(new Uint8Array(32)),
  reverses: "",
  selection: '{"as_of":"1"}',
  total: "0.000000",
};
