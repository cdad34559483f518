/** An agent's host that has claimed its key at a service over a log that can lie. */
import { rmSync } from "node:fs";
import { Host } from "./host.ts";
import { TestLog } from "./log.ts";
import { FakeService, LOG } from "./service.ts";

export interface Stage {
  host: Host;
  service: FakeService;
  ledger: TestLog;
}

export async function openStage(): Promise<Stage> {
  const host = new Host();
  const service = new FakeService();
  const ledger = new TestLog(LOG);
  service.ledger = ledger;
  await host.claim(await service.start());
  return { host, service, ledger };
}

export async function closeStage({ host, service }: Omit<Stage, "ledger">): Promise<void> {
  await service.stop();
  rmSync(host.root, { recursive: true });
}

/** Some reports that are on the log, and proven. */
export async function sendProven({ host, ledger }: Stage, count: number): Promise<void> {
  await host.send(count);
  ledger.seal();
  await host.check();
}
