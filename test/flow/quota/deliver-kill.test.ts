/** Real processes, killed while a receiver has what they sent, and they have not said so. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { compiled } from "../../compile.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { Courier, fill, SECRET, stateOf } from "./outbox.ts";
import { answering, Receiver, verified } from "./receiver.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

const PROCESS = compiled(new URL("./delivering-process.ts", import.meta.url));
/** A request's time and what is added to it. */
const CLAIM_MS = 60_000;

function start(url: string): ChildProcess {
  const args = [PROCESS, db.urls.writer, url];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  return child;
}

test.each(["before the receiver answers", "after it answered"])(
  "who is killed %s leaves a claim: when it runs out the receiver gets the same id and bytes again",
  async (when) => {
    const receiver = await new Receiver().listen();
    onTestFinished(() => receiver.close());
    const clock = { time: Date.now(), now: () => clock.time };
    const [id = "", next = ""] = await fill(db.writer, when.length, clock.time - 1_000, 2);
    const child = start(receiver.url);
    if (when.startsWith("before")) {
      receiver.behaviours = [() => child.kill("SIGKILL"), answering(204)];
    } else {
      child.stdout?.on("data", () => child.kill("SIGKILL"));
    }
    const [, signal] = await once(child, "exit");
    expect(signal).toBe("SIGKILL");
    expect(receiver.ids).toEqual([id]);
    expect(await stateOf(db.reader, id)).toBe("pending");

    const webhook = { url: receiver.url, secrets: [SECRET] };
    const courier = new Courier({ sql: db.writer, clock, webhook });
    onTestFinished(() => courier.stop());
    await vi.waitUntil(() => courier.rounds > 5, { timeout: 20_000 });
    expect(receiver.ids).toEqual([id]);
    clock.time = Date.now() + CLAIM_MS;
    await vi.waitUntil(async () => (await stateOf(db.reader, next)) === "delivered", {
      timeout: 20_000,
    });
    expect(receiver.ids).toEqual([id, id, next]);
    const [one, two] = receiver.received;
    if (one === undefined || two === undefined) throw new Error("nothing came");
    expect(two.body).toBe(one.body);
    expect(two.timestamp).toBeGreaterThan(one.timestamp);
    for (const received of [one, two]) expect(verified(SECRET, received)).toBeDefined();
  },
);
