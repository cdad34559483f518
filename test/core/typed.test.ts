import { expect, test } from "vitest";
import { type EntryOf, GENESIS_PREV } from "../../src/core/entry.ts";
import { judge } from "../../src/core/judge.ts";
import { usageColumns } from "../../src/core/typed.ts";
import { History, kidOf, LOG, NOW, report, UUID } from "./history.ts";

test("the columns beside a usage say what its bytes and its runner's line say", () => {
  const history = new History();
  history.agent(1);
  history.card();
  const said = report({ job: { id: "9007199254740993" }, usage: { duration_ms: "123" } });
  const judgement = judge(history.prefix, kidOf(1), said, NOW);
  if (judgement.kind === "hold") throw new Error(judgement.code);
  const entry: EntryOf<"usage"> = {
    at: NOW,
    body: { ...judgement.body, jws: "x" },
    index: 4n,
    kind: "usage",
    log: LOG,
    prev: GENESIS_PREV,
  };
  expect(usageColumns(entry, said, BigInt(judgement.runner.runner_id))).toEqual({
    tracking: "hosted",
    job_id: 9007199254740993n,
    project_id: 50n,
    namespace_id: 7n,
    runner_uuid: UUID,
    runner_id: 700n,
    machine_type: "small",
    duration_ms: 123n,
    compute_ms: "123.000000",
    not_billable: "",
    usage_month: "2026-11-01",
    billing_month: "2026-11-01",
    finished_at: NOW,
  });
});
