/** What Redis answers when it is asked for nothing: the measure that decisions are held against. */
import { Redis } from "ioredis";

const NOTHING = "return 0";
const KEY = "bench:nothing";

/** A script that does nothing, by one client over one connection. */
export interface BareRedis {
  /** So many calls, never more than `inFlight` at once. */
  calls(count: number, inFlight: number): Promise<void>;
  /** Milliseconds from each call to its answer, one after the other. */
  latencies(count: number): Promise<number[]>;
  /** CPU seconds of the server so far. */
  processorSeconds(): Promise<number>;
  close(): Promise<void>;
}

export async function openBareRedis(url: string): Promise<BareRedis> {
  const client = new Redis(url);
  const sha = String(await client.script("LOAD", NOTHING));
  return {
    calls: async (count, inFlight) => {
      let next = 0;
      const lane = async (): Promise<void> => {
        while (next < count) {
          next += 1;
          await client.evalsha(sha, 1, KEY);
        }
      };
      await Promise.all(Array.from({ length: inFlight }, lane));
    },
    latencies: async (count) => {
      const taken: number[] = [];
      for (let i = 0; i < count; i += 1) {
        const start = process.hrtime.bigint();
        await client.evalsha(sha, 1, KEY);
        taken.push(Number(process.hrtime.bigint() - start) / 1e6);
      }
      return taken;
    },
    processorSeconds: async () => {
      const info = await client.info("cpu");
      const times = info.matchAll(/^used_cpu_(?:user|sys):([0-9.]+)\r?$/gm);
      return Array.from(times, ([, seconds]) => Number(seconds)).reduce((a, b) => a + b, 0);
    },
    close: async () => client.disconnect(),
  };
}
