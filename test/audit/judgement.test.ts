import { describe, expect, test } from "vitest";
import { type Body, decodeEntry } from "../../src/core/entry.ts";
import { TYP } from "../../src/core/report.ts";
import { auditFiles, filesOf, said } from "./archive.ts";
import { honestLog } from "./honest.ts";
import {
  type Agent,
  agentOf,
  type Build,
  line,
  NOW,
  OTHER_LOG_ID,
  SALT,
  sign,
  TestLog,
} from "./log.ts";

/** An honest log, and one entry after it that no honest service would have written. */
async function found(
  write: (log: TestLog, agent: Agent, other: Agent) => void,
): Promise<{ codes: string[]; first: bigint | undefined; last: bigint }> {
  const { log, other } = honestLog();
  const agent = log.enrol(9, [{ ...RUNNER, uuid: "runner-a" }]);
  write(log, agent, other);
  const result = await auditFiles(filesOf(log));
  return { ...said(result), last: BigInt(log.size - 1) };
}

const RUNNER = {
  effective_from: "2026-11-20T12:00:00.001Z",
  machine_type: "small",
  runner_id: "7",
  runner_type: "instance",
  tracking: "hosted",
} as const;

/** A usage body for a build, rated as if nothing stood against it. */
function rated(log: TestLog, agent: Agent, build: Build): Body<"usage"> {
  const body = log.usage(agent, { job: "900" });
  return { ...body, jws: log.report(agent, build).jws };
}

describe("a usage entry that should have been held", () => {
  const cases: [string, (log: TestLog, agent: Agent, other: Agent) => void][] = [
    [
      "key-ended",
      (log, agent) => {
        const body = { by: "operator", instant: log.at, reason: "lost", salt: SALT };
        const usage = rated(log, agent, { job: "901", counter: "3" });
        log.force("key_revoked", { ...body, kid: agent.kid, last_trusted_counter: "2" });
        log.force("usage", usage);
      },
    ],
    [
      "outside-enrolment",
      (log, agent) => log.force("usage", rated(log, agent, { job: "901", uuid: "runner-b" })),
    ],
    [
      "outside-enrolment",
      (log, _, other) => {
        const body = log.usage(other, { job: "900", uuid: "runner-c", namespace: "5" });
        const { jws } = log.report(other, { job: "901", uuid: "runner-c", namespace: "6" });
        log.force("usage", { ...body, jws });
      },
    ],
    [
      "future",
      (log, agent) =>
        log.force("usage", rated(log, agent, { job: "901", finished: "2026-11-20T12:05:00.001Z" })),
    ],
    [
      "over-cap",
      (log, agent) => log.force("usage", rated(log, agent, { job: "901", duration: "2678400001" })),
    ],
  ];
  test.each(cases)("is found: %s", async (code, write) => {
    const { codes, first, last } = await found(write);
    expect(codes).toEqual([code]);
    expect(first).toBe(last);
  });

  test("is found: no-rate", async () => {
    const { log: rich, agent } = honestLog();
    const log = new TestLog();
    const poor = log.enrol(9, [line("runner-a")]);
    log.force("usage", { ...rich.usage(agent, { counter: "1" }), jws: log.report(poor).jws });
    expect(said(await auditFiles(filesOf(log)))).toEqual({ codes: ["no-rate"], first: 3n });
  });
});

test("a report held for another reason than the first that applies is found, and one without any", async () => {
  const wrong = await found((log, agent) => {
    const { jws } = log.report(agent, { finished: "2026-11-20T12:05:00.001Z" });
    log.force("hold", { code: "over-cap", jws });
  });
  expect(wrong).toMatchObject({ codes: ["hold-unfounded"], first: wrong.last });
  const none = await found((log, agent) => {
    log.force("hold", { code: "future", jws: log.report(agent).jws });
  });
  expect(none).toMatchObject({ codes: ["hold-unfounded"], first: none.last });
});

const MEMBERS: [keyof Body<"usage">, Partial<Body<"usage">>][] = [
  ["billable", { billable: false }],
  ["billing_month", { billing_month: "2026-12-01" }],
  ["card", { card: "3" }],
  ["class", { class: "oss" }],
  ["compute_ms", { compute_ms: "60000.000001" }],
  ["enrolment", { enrolment: "7" }],
  ["factor", { factor: "2/1" }],
  ["limit", { limit: "6" }],
  ["machine_type", { machine_type: "large" }],
  ["not_billable", { not_billable: "failure_reason" }],
  ["tracking", { tracking: "self_managed" }],
  ["usage_month", { usage_month: "2026-10-01" }],
];
test.each(MEMBERS)(
  "a usage entry whose %s is not what rating again gives is found",
  async (_, changed) => {
    const { codes, first, last } = await found((log, agent) => {
      log.force("usage", { ...log.usage(agent), ...changed });
    });
    expect({ codes, first }).toEqual({ codes: ["rating"], first: last });
  },
);

test("a second usage entry for a job is found, and one with the same fact is a duplicate", async () => {
  const twice = await found((log, agent) => {
    log.force("usage", log.usage(agent, { job: "1", duration: "7" }));
  });
  expect(twice).toMatchObject({ codes: ["usage-twice"], first: twice.last });
  const same = await found((log, agent) => {
    log.force("usage", log.usage(agent, { job: "1", duration: "60001" }));
  });
  expect(same).toMatchObject({ codes: ["duplicate-written"], first: same.last });
});

test("a conflict that names another entry than the job's, or has its fact, is found", async () => {
  const usage = 11n;
  const named = await found((log, agent) => {
    const { jws } = log.report(agent, { job: "1", duration: "8" });
    log.force("conflict", { jws, stands: String(usage + 1n) });
  });
  expect(named).toMatchObject({ codes: ["conflict-unfounded"], first: named.last });
  const none = await found((log, agent) => {
    log.force("conflict", { jws: log.report(agent, { job: "999" }).jws, stands: String(usage) });
  });
  expect(none).toMatchObject({ codes: ["conflict-unfounded"], first: none.last });
  const same = await found((log, agent) => {
    const { jws } = log.report(agent, { job: "1", duration: "60001" });
    log.force("conflict", { jws, stands: String(usage) });
  });
  expect(same).toMatchObject({ codes: ["duplicate-written"], first: same.last });
});

test("a conflict that should have been held is found", async () => {
  const { codes } = await found((log, agent) => {
    const { jws } = log.report(agent, { job: "1", finished: "2026-11-20T12:05:00.001Z" });
    log.force("conflict", { jws, stands: "11" });
  });
  expect(codes).toEqual(["future"]);
});

test("a customer's own runner that claims a hosted job takes no one's place", async () => {
  const { codes } = await found((log, _, other) => {
    log.force("usage", log.usage(other, { job: "2", uuid: "runner-c", namespace: "5" }));
  });
  expect(codes).toEqual([]);
});

test("a report that two entries account for is found", async () => {
  const { codes, first, last } = await found((log, agent) => {
    const body = log.usage(agent);
    log.force("usage", body);
    log.dispose(agent, [["schema", "2", body.jws, ""]]);
  });
  expect(codes).toEqual(["digest-twice"]);
  expect(first).toBe(last);
});

describe("a statement that proves nothing", () => {
  const payload = (log: TestLog, agent: Agent) => log.report(agent).report;
  const cases: [string, string, (log: TestLog, agent: Agent) => string][] = [
    ["is no JWS", "jws-malformed", () => "x.y.z"],
    ["has padding", "jws-malformed", (log, agent) => `${log.report(agent).jws}=`],
    [
      "is of another typ",
      "jws-malformed",
      (log, agent) => sign(agent.kid, agent.key, TYP.attestation, payload(log, agent)),
    ],
    [
      "is by an unknown key",
      "jws-key",
      (log, agent) => sign(agentOf(99).kid, agentOf(99).key, TYP.report, payload(log, agent)),
    ],
    [
      "is by a key that is not its kid's",
      "jws-signature",
      (log, agent) => sign(agent.kid, agentOf(99).key, TYP.report, payload(log, agent)),
    ],
    [
      "has an inadmissible signature",
      "jws-signature",
      (log, agent) => `${log.report(agent).jws.slice(0, -86)}${"_".repeat(85)}w`,
    ],
    [
      "is not of its shape",
      "jws-payload",
      (log, agent) => sign(agent.kid, agent.key, TYP.report, { ...payload(log, agent), more: "" }),
    ],
  ];
  test.each(cases)("is found: it %s", async (_, code, jws) => {
    const { codes, first, last } = await found((log, agent) => {
      log.force("conflict", { jws: jws(log, agent), stands: "11" });
    });
    expect(codes).toContain(code);
    expect(first).toBe(last);
  });

  test("is found as an attestation too", async () => {
    const { codes } = await found((log, agent) => {
      log.force("attestation", { jws: log.report(agent).jws });
    });
    expect(codes).toEqual(["jws-malformed"]);
  });

  test("is found when it is for another log", async () => {
    const { codes } = await found((log, agent) => {
      log.force("usage", {
        ...log.usage(agent),
        jws: log.report(agent, { log: OTHER_LOG_ID }).jws,
      });
    });
    expect(codes).toEqual(["jws-log"]);
  });
});

describe("an attestation by a key that has ended", () => {
  const END = { by: "operator", instant: NOW, reason: "lost", salt: SALT };

  test("vouches for no counter past the end", async () => {
    const { codes, first, last } = await found((log, agent) => {
      log.write("key_revoked", { ...END, kid: agent.kid, last_trusted_counter: "2" });
      log.attest(agent, "3");
    });
    expect({ codes, first }).toEqual({ codes: ["key-has-ended"], first: last });
  });

  test("is welcome up to the end", async () => {
    const { codes } = await found((log, agent) => {
      log.write("key_revoked", { ...END, kid: agent.kid, last_trusted_counter: "2" });
      log.attest(agent, "2");
    });
    expect(codes).toEqual([]);
  });
});

test("an attestation that comes again, or late, takes nothing back", async () => {
  const { log } = honestLog();
  const agent = log.enrol(9, [{ ...RUNNER, uuid: "runner-a" }]);
  log.attest(agent, "7");
  const early = decodeEntry(log.entries.at(-1) ?? new Uint8Array());
  log.attest(agent, "9");
  if (typeof early === "object" && early.kind === "attestation") log.force(early.kind, early.body);
  const { findings, keys } = await auditFiles(filesOf(log));
  expect(findings.count).toBe(0);
  expect(keys.find(({ kid }) => kid === agent.kid)?.attested).toBe(9n);
});
