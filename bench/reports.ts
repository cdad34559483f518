/** Signed reports over HTTP, each verified and committed before it is answered. */
import { publicKeyOf, signaturesOf, verifyOnOneCore } from "./baseline.ts";
import type { Context } from "./history.ts";
import { load, percentile, post } from "./load.ts";
import { alternate, type Row, rate } from "./measure.ts";
import { peakMemory } from "./process.ts";
import type { BenchService } from "./service.ts";

const BATCH = 100;
const BATCH_CONNECTIONS = 8;
const SINGLE_CONNECTIONS = 64;
const NAMESPACES = 1_000;
const MEMORY_MIB_MAX = 512;
const AGAINST = "node:crypto Ed25519 on one core, key cached";

/** A hundred of them in a request, as agents send them. */
export async function batches({ service: open, sizes, say }: Context): Promise<Row> {
  const service = await open();
  const { batched, rounds } = sizes;
  const figures = await alternate({
    a: () => inBatches(service, batched, NAMESPACES),
    b: verification(service, batched),
    rounds,
    say,
  });
  const peaks = { "the service's peak memory": peakMemory(service.pid) };
  return {
    row: `reports over HTTP, batches of ${BATCH}, ${BATCH_CONNECTIONS} connections`,
    against: AGAINST,
    bound: { kind: "at-least", ratio: 1 },
    memory: { peaks, most: MEMORY_MIB_MAX },
    unit: "reports/s",
    ...figures,
  };
}

/** One in a request: what a runner that signs by itself would send. */
export async function single({ service: open, sizes, say }: Context): Promise<Row> {
  const service = await open();
  const latencies: number[] = [];
  const figures = await alternate({
    a: async (round) => {
      const texts = service.fleet.texts(sizes.single, NAMESPACES);
      const requests = texts.map((text) => post(service.reports, "application/jose", text));
      const figure = await rate(sizes.single, async () => {
        const taken = await load(service.reports, requests, SINGLE_CONNECTIONS);
        if (round > 0) latencies.push(...taken.latencies);
      });
      await service.settled();
      return figure;
    },
    b: verification(service, sizes.single),
    rounds: sizes.rounds,
    say,
  });
  return {
    row: `one report a request, ${SINGLE_CONNECTIONS} connections`,
    against: AGAINST,
    bound: { kind: "at-least", ratio: 0.5 },
    unit: "reports/s",
    ...figures,
    notes: {
      p50: `${percentile(latencies, 0.5).toFixed(1)} ms`,
      p99: `${percentile(latencies, 0.99).toFixed(1)} ms`,
    },
  };
}

/** No row that all writers of a namespace queue at: where the builds belong makes no difference. */
export async function namespace({ service: open, sizes, say }: Context): Promise<Row> {
  const service = await open();
  const { batched, rounds } = sizes;
  const figures = await alternate({
    a: () => inBatches(service, batched, 1),
    b: () => inBatches(service, batched, NAMESPACES),
    rounds,
    say,
  });
  return {
    row: "all in one namespace",
    against: `spread over ${NAMESPACES}`,
    bound: { kind: "at-least", ratio: 0.95 },
    unit: "reports/s",
    ...figures,
  };
}

async function inBatches(
  { fleet, reports, settled }: BenchService,
  count: number,
  namespaces: number,
): Promise<number> {
  const texts = fleet.texts(count, namespaces);
  const requests = Array.from({ length: count / BATCH }, (_, i) => {
    const body = JSON.stringify({ reports: texts.slice(i * BATCH, (i + 1) * BATCH) });
    return post(reports, "application/json", body);
  });
  let bodies: readonly string[] = [];
  const figure = await rate(count, async () => {
    ({ bodies } = await load(reports, requests, BATCH_CONNECTIONS));
  });
  for (const body of bodies) assertAccepted(body);
  await settled();
  return figure;
}

/** A batch is answered 200 whatever its reports are. */
function assertAccepted(body: string): void {
  const accepted = body.split('"code":"accepted"').length - 1;
  if (accepted !== BATCH) throw new Error(`bench: ${accepted} of ${BATCH} accepted`);
}

/** The same kind of signing inputs, of the same key and length. */
function verification({ claim, fleet }: BenchService, count: number): () => Promise<number> {
  const key = publicKeyOf(claim);
  const signatures = signaturesOf(fleet.texts(count, NAMESPACES));
  return () => rate(count, async () => verifyOnOneCore(key, signatures));
}
