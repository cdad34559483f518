/** Exports: asked for, looked after, and fetched, the whole file or what of it is missing. */
import { decodeBase64, encodeHex } from "../core/text.ts";
import { type Asking, ask as askFor } from "../flow/export/ask.ts";
import {
  type ExportFile,
  type Exports,
  exportFile,
  manifestJson,
  manifestNote,
  type OfExport,
  showExport,
  showExports,
} from "../flow/export/read.ts";
import { assertLog, type Caller } from "./access.ts";
import { answer, answerText } from "./answer.ts";
import type { Services } from "./app.ts";
import { parsed, readJson } from "./body.ts";
import { ExportId, ExportSearch, LogExport } from "./operations/shapes.ts";
import { logOf, member } from "./path.ts";
import { problemDocument, respond } from "./problem.ts";
import { rangeOf } from "./range.ts";
import type { Ask, Observer, Router } from "./router.ts";

export type Exporting = Asking & Exports;

export function exportRoutes(router: Router, { exports, observer, streams }: Services): void {
  router.guarded("POST /v1/exports", async (ask, caller) => {
    const { log, ...input } = await readJson(ask, LogExport);
    assertLog(caller, log);
    return answer(202, await askFor(exports, { log, by: caller.id }, input));
  });

  router.guarded("GET /v1/exports", async (ask, caller) => {
    const { log, before } = parsed(ExportSearch, ask.query());
    assertLog(caller, log);
    const below = before === undefined ? undefined : BigInt(before);
    return answer(200, await showExports(exports, log, below));
  });

  router.guarded("GET /v1/exports/:log/:export", async (ask, caller) => {
    return answer(200, await showExport(exports, exportOf(ask, caller)));
  });

  router.guarded("GET /v1/exports/:log/:export/manifest", async (ask, caller) => {
    const json = await manifestJson(exports, exportOf(ask, caller));
    return answerText(json, "application/json");
  });

  router.guarded("GET /v1/exports/:log/:export/manifest.note", async (ask, caller) => {
    const note = await manifestNote(exports, exportOf(ask, caller));
    return answerText(note, "text/plain; charset=utf-8");
  });

  router.guarded("GET /v1/exports/:log/:export/file", async (ask, caller) => {
    const file = await exportFile(exports, exportOf(ask, caller));
    streams.watch(ask.incoming.socket);
    return answerFile(ask, file, observer);
  });
}

function exportOf(ask: Ask, caller: Caller): OfExport {
  const log = logOf(ask, caller);
  return { log, id: member(ExportId, ask.param("export")) };
}

const TYPES: Readonly<Record<ExportFile["format"], string>> = {
  csv: "text/csv; charset=utf-8",
  ndjson: "application/x-ndjson",
  parquet: "application/vnd.apache.parquet",
};

/** Its name holds letters, digits, dots and hyphens alone, so that a header takes it as it is. */
function answerFile({ incoming }: Ask, file: ExportFile, observer: Observer): Response {
  const { bytes, format, name, sha256 } = file;
  const etag = `"${encodeHex(decodeBase64(sha256) ?? new Uint8Array())}"`;
  // RFC 9110 §14.2: to any other method, HEAD among them, a range says nothing.
  const isGet = incoming.method === "GET";
  const range = isGet ? rangeOf(incoming.headers, { bytes, etag }) : "whole";
  if (range === "unsatisfiable") {
    const document = problemDocument("range-not-satisfiable");
    return respond(document, { "accept-ranges": "bytes", "content-range": `bytes */${bytes}` });
  }
  const { from, to } = range === "whole" ? { from: 0, to: bytes } : range;
  // Made when it is read: of a HEAD, or of whoever goes away before, nothing is opened.
  const body = ReadableStream.from(watched(file.read({ from, to }), observer));
  const part = range !== "whole" && { "content-range": `bytes ${from}-${to - 1}/${bytes}` };
  return new Response(body, {
    status: range === "whole" ? 200 : 206,
    headers: {
      "accept-ranges": "bytes",
      "cache-control": "no-store",
      "content-disposition": `attachment; filename="${name}"`,
      "content-length": String(to - from),
      "content-type": TYPES[format],
      "x-content-type-options": "nosniff",
      etag,
      ...part,
    },
  });
}

/** Its status has gone out by then: whoever reads is cut off, and the service's log has why. */
async function* watched(
  chunks: AsyncIterable<Uint8Array>,
  { brokenOff }: Observer,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (error) {
    brokenOff(error);
    throw error;
  }
}
