/**
 * Logs for whoever checks them: C2SP tlog-tiles below `/logs`, proofs and lists beside it. To callers who
 * may not read a log, whatever they ask of it, it is not there.
 */
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { Problem } from "../core/problem.ts";
import { encodeBase64, encodeUtf8 } from "../core/text.ts";
import { parseTilePath } from "../core/tile.ts";
import { IntegerText, LogId } from "../core/unit.ts";
import { checkpointAt, proveIndex, proveSizes } from "../flow/log/prove.ts";
import { serveSizes, serveTile } from "../flow/log/serve.ts";
import { NewVisibility, setVisibility } from "../flow/log/visibility.ts";
import { preferred } from "./accept.ts";
import { type Caller, type Reach, reachOf } from "./access.ts";
import { answer, answerReceipt } from "./answer.ts";
import type { Services } from "./app.ts";
import { parsed, readJson } from "./body.ts";
import { CheckpointSearch, ConsistencySearch, InclusionSearch } from "./operations/shapes.ts";
import { logOf, member } from "./path.ts";
import type { Ask, Router } from "./router.ts";

/** A log that the caller may read, and who may keep what is answered. */
interface Readable {
  log: string;
  reach: Reach;
  cache: "public" | "private";
}

/** Tiles never change: for as long as HTTP can say (RFC 8246). */
const TILE_AGE = "max-age=31536000, immutable";
/** A log is sealed once a second. */
const CHECKPOINT_AGE = "max-age=2";

/** Of a full bundle of usage (334 KB) level 1 leaves 50 KB after 5 ms, level 9 leaves 44 KB after 17. */
const compressed = promisify(gzip);
const FAST = { level: constants.Z_BEST_SPEED };

export function logRoutes(router: Router, { flow, serving }: Services): void {
  const readable = async (ask: Ask, caller: Caller): Promise<Readable> => {
    const log = member(LogId, ask.param("log"));
    const isPublic = await serving.visibility.isPublic(log);
    const reach = reachOf(caller, log, isPublic);
    return { log, reach, cache: isPublic ? "public" : "private" };
  };

  router.published("GET /logs/:log/checkpoint", async (ask, caller) => {
    const { log, cache } = await readable(ask, caller);
    return answerText((await checkpointAt(serving, log)).note, cache);
  });

  router.published("GET /logs/:log/checkpoint/:size", async (ask, caller) => {
    const { log, cache } = await readable(ask, caller);
    const size = BigInt(member(IntegerText, ask.param("size")));
    return answerText((await checkpointAt(serving, log, size)).note, cache);
  });

  router.published("GET /logs/:log/tile/:path", async (ask, caller) => {
    const { log, reach, cache } = await readable(ask, caller);
    const path = tilePathOf(ask);
    const tile = parseTilePath(path);
    if (tile === undefined) throw new Problem("invalid-tile");
    if (tile.kind === "entries" && reach === "hashes") throw new Problem("not-found");
    const bytes = await serveTile(serving, log, { path, tile });
    return await answerTile(bytes, { ask, cache, kind: tile.kind });
  });

  router.published("GET /v1/logs/:log/checkpoints", async (ask, caller) => {
    const { log } = await readable(ask, caller);
    const { after, limit } = parsed(CheckpointSearch, ask.query());
    const page = { after: integer(after), limit };
    const { sizes, next } = await serveSizes(serving, log, page);
    return answer(200, { sizes: sizes.map(String), ...(next && { next: String(next) }) });
  });

  router.published("GET /v1/logs/:log/proofs", async (ask, caller) => {
    const { log, cache } = await readable(ask, caller);
    const { index, size } = parsed(InclusionSearch, ask.query());
    const place = { index: BigInt(index), size: integer(size) };
    return answerText(await proveIndex(serving, log, place), cache);
  });

  router.published("GET /v1/logs/:log/consistency", async (ask, caller) => {
    const { log } = await readable(ask, caller);
    const search = parsed(ConsistencySearch, ask.query());
    const sizes = { from: BigInt(search.from), to: integer(search.to) };
    const { from, to, hashes } = await proveSizes(serving, log, sizes);
    const proof = hashes.map((hash) => encodeBase64(hash));
    return answer(200, { from: String(from), to: String(to), hashes: proof });
  });

  router.guarded("POST /v1/logs/:log/visibility", async (ask, caller) => {
    const log = logOf(ask, caller);
    const input = await readJson(ask, NewVisibility);
    return answerReceipt(await setVisibility(flow, { log, by: caller.id }, input), input);
  });
}

function integer(text: string | undefined): bigint | undefined {
  return text === undefined ? undefined : BigInt(text);
}

/**
 * As it was sent. Percent-encoding would be another name for the same tile, which caches keep twice.
 *
 * @throws Problem `invalid-tile`
 */
function tilePathOf({ incoming, param }: Ask): string {
  const path = `tile/${param("path")}`;
  const [sent = ""] = (incoming.url ?? "").split("?");
  if (!sent.endsWith(`/${path}`)) throw new Problem("invalid-tile");
  return path;
}

function answerText(text: string, cache: Readable["cache"]): Response {
  return sized(encodeUtf8(text), {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": `${cache}, ${CHECKPOINT_AGE}`,
  });
}

/** Hashes do not compress at all. */
async function answerTile(
  bytes: Uint8Array,
  { ask, cache, kind }: Pick<Readable, "cache"> & { ask: Ask; kind: "tile" | "entries" },
): Promise<Response> {
  const headers = {
    "content-type": "application/octet-stream",
    "cache-control": `${cache}, ${TILE_AGE}`,
  };
  if (kind === "tile") return sized(bytes, headers);
  const vary = { ...headers, vary: "accept-encoding" };
  const coding = preferred(ask.incoming.headers["accept-encoding"], ["identity", "gzip"]);
  if (coding === "identity") return sized(bytes, vary);
  return sized(await compressed(bytes, FAST), { ...vary, "content-encoding": "gzip" });
}

/** HEAD has to say the length without the body. */
function sized(body: Uint8Array, headers: Readonly<Record<string, string>>): Response {
  return new Response(body, { headers: { ...headers, "content-length": String(body.length) } });
}
