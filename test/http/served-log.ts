/** A log with builds in several bundles, served by a whole service; for tests of how it is read. */
import { reported } from "../flow/door.ts";
import { ask, type House, newLog, openHouse, sealedSize, tokenOf } from "./house.ts";

export interface ServedLog extends House {
  log: string;
  /** The key that its checkpoints are signed with, as auditors are given it. */
  vkey: string;
  /** Size of an earlier checkpoint, whose tiles are partial. */
  first: number;
  /** Of the published one, with a full tile and a partial one. */
  last: number;
  auditor: string;
  /** Of jobs from … to, once they are sealed, the size that they are sealed at. */
  submit(from: number, to: number): Promise<number>;
}

export async function openServedLog(): Promise<ServedLog> {
  const house = await openHouse();
  const { log } = await newLog(house, "served", 1);
  const submit = async (from: number, to: number): Promise<number> => {
    const reports = Array.from({ length: to - from + 1 }, (_, i) => {
      const number = String(from + i);
      return reported(1, log, { counter: number, job: { id: number } });
    });
    const { status } = await ask(house, "POST /v1/reports", { json: { reports } });
    if (status !== 200) throw new Error(`reports are answered ${status}`);
    return Number(await sealedSize(house, log));
  };
  const first = await submit(1, 100);
  const last = await submit(101, 300);
  const auditor = await tokenOf(["auditor"]);
  const { logs } = (await ask(house, "GET /v1/logs", { token: auditor })).json;
  const [{ vkey }] = logs as [{ vkey: string }];
  return { ...house, log, vkey, first, last, auditor, submit };
}

export const problem = ({ status, json }: { status: number; json: Record<string, unknown> }) => [
  status,
  json["code"],
];
