/** The auditor's own process over an archive, against the bare verification of its signatures. */
import { spawn } from "node:child_process";
import { publicKeyOf, signaturesOf, verifyOnAllCores } from "./baseline.ts";
import type { Context } from "./history.ts";
import type { Ledger } from "./ledger.ts";
import { alternate, type Row, rate } from "./measure.ts";
import { watchMemory } from "./process.ts";

const COMMAND = new URL("../audit/cli.js", import.meta.url).pathname;
const MEMORY_MIB_MAX = 256;

export async function audit({ histories, sizes, say }: Context): Promise<Row> {
  const ledger = await histories(sizes.large);
  const [{ size } = { size: 0n }] = await ledger.sql<{ size: bigint }[]>`select size from seals`;
  const entries = Number(size);
  const key = publicKeyOf(ledger.claim);
  const signatures = signaturesOf(ledger.fleet.texts(entries, 1));
  let peak = 0;
  const figures = await alternate({
    a: () =>
      rate(entries, async () => {
        peak = Math.max(peak, await auditOnce(ledger));
      }),
    b: () => rate(entries, () => verifyOnAllCores(key, signatures)),
    rounds: sizes.rounds,
    say,
  });
  return {
    row: `full audit of ${entries} entries`,
    against: "node:crypto verification, 64 in flight, all cores",
    bound: { kind: "at-least", ratio: 0.65 },
    memory: { peaks: { "peak memory": peak }, most: MEMORY_MIB_MAX },
    unit: "entries/s",
    ...figures,
  };
}

/** @returns its peak memory in MiB */
async function auditOnce({ archive, log, vkey }: Ledger): Promise<number> {
  const child = spawn(process.execPath, [COMMAND, "verify", archive, log, "--vkey", vkey], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const peak = watchMemory(child.pid ?? 0);
  const status = await new Promise((resolve) => child.once("exit", resolve));
  if (status !== 0) throw new Error(`bench: the audit ended with ${status}`);
  return peak();
}
