import type { ServerResponse } from "node:http";
import { afterEach, expect, test } from "vitest";
import { openCheckpoint } from "../../audit/archive/checkpoints.ts";
import { CannotLook } from "../../audit/finding.ts";
import type { AskOptions } from "../../audit/http/ask.ts";
import { httpSource } from "../../audit/http/source.ts";
import { verifyNow } from "../../audit/native.ts";
import { exitOf } from "../../audit/print.ts";
import type { AuditOptions, AuditResult } from "../../audit/verify.ts";
import { encodeBundle } from "../../src/core/bundle.ts";
import { testKey } from "../signing.ts";
import { auditSource, checkpointOf, filesOf, said, signer, vkey } from "./archive.ts";
import { longLog, smallLog } from "./honest.ts";
import { LOG_ID, OTHER_LOG_ID } from "./log.ts";
import { type Lie, type LogServer, serveFiles } from "./server.ts";

const log = longLog(1_100);
const FILES = filesOf(log, [5, 300, 700, 1_100]);
const servers: LogServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function serve(
  files = FILES,
  options: Parameters<typeof serveFiles>[1] = {},
): Promise<LogServer> {
  const server = await serveFiles(files, options);
  servers.push(server);
  return server;
}

/** Waits for nothing: whoever must wait has only to be asked again. */
const PATIENT: AskOptions = { pause: async () => {} };
/** For a server that keeps silent: what an honest one takes longer for on a busy machine is no verdict either. */
const HASTY: AskOptions = { ...PATIENT, timeoutMs: 500 };

async function auditUrl(
  url: string,
  options: Partial<AuditOptions> = {},
  asking: AskOptions = PATIENT,
): Promise<AuditResult> {
  const { source } = await httpSource(url, asking);
  return await auditSource(source, options);
}

/** The verdict on a server that lies about one path. */
async function verdictOn(lie: Lie, asking = PATIENT): Promise<string[] | string> {
  const { url } = await serve(FILES, { lie, sizes: [5, 300, 700, 1_100] });
  try {
    const result = await auditUrl(url, {}, asking);
    expect(exitOf(result)).toBe(1);
    return said(result).codes;
  } catch (error) {
    expect(error).toBeInstanceOf(CannotLook);
    return String(error);
  }
}

function at(wrong: string, answer: (response: ServerResponse) => void): Lie {
  return (path, response) => {
    if (path !== wrong) return false;
    answer(response);
    return true;
  };
}

function instead(wrong: string, bytes: Uint8Array | string): Lie {
  return at(wrong, (response) => response.end(bytes));
}

test("a log is proven over HTTP, with every archived checkpoint that its server lists", async () => {
  const { asked, url } = await serve(FILES, { sizes: [5, 300, 700, 1_100] });
  const result = await auditUrl(url);
  expect(result.findings.listed).toEqual([]);
  expect([exitOf(result), result.size, result.checkpoints]).toEqual([0, 1_100n, 4]);
  expect(result.limits).toHaveLength(1);
  expect(asked.filter((path) => path === "tile/entries/001")).toHaveLength(1);
});

test("no hash tile is asked for twice, and none that the checkpoint does not imply", async () => {
  const { asked, url } = await serve();
  await auditUrl(url);
  expect(new Set(asked).size).toBe(asked.length);
  const partial = asked.filter((path) => path.includes(".p/"));
  expect(partial.sort()).toEqual(["tile/0/004.p/76", "tile/1/000.p/4", "tile/entries/004.p/76"]);
});

test("where a server has only the standard, the outcome says that only its latest was verified", async () => {
  const { url } = await serve();
  const result = await auditUrl(url);
  expect([exitOf(result), result.checkpoints]).toEqual([0, 1]);
  expect(result.limits).toContainEqual(expect.stringContaining("only its latest was verified"));
});

test("a partial tile or bundle that is gone is read from the full one", async () => {
  const files = filesOf(log, [700, 1_100]);
  for (const path of ["checkpoint/1100", "tile/0/002.p/188", "tile/entries/002.p/188"]) {
    expect(files.delete(path)).toBe(true);
  }
  const { url } = await serve(files);
  const result = await auditUrl(url);
  expect([exitOf(result), result.size]).toEqual([0, 700n]);
});

test("bearer tokens go along, and a server that wants one is no verdict", async () => {
  const guard: Lie = (_, answer, ask) => {
    if (ask.headers.authorization === "Bearer secret") return false;
    answer.writeHead(401).end();
    return true;
  };
  const { url } = await serve(FILES, { lie: guard });
  await expect(auditUrl(url)).rejects.toThrow(/401/);
  expect(exitOf(await auditUrl(url, {}, { token: "secret" }))).toBe(0);
});

test.each([429, 500, 503])("a server that answers %i is asked again", async (status) => {
  const times = new Map<string, number>();
  const lie: Lie = (path, answer) => {
    const before = times.get(path) ?? 0;
    times.set(path, before + 1);
    if (before >= 3) return false;
    answer.writeHead(status, { "retry-after": "7" }).end("busy");
    return true;
  };
  const { url } = await serve(FILES, { lie });
  const waited: number[] = [];
  const pause = async (ms: number): Promise<void> => {
    waited.push(ms);
  };
  expect(exitOf(await auditUrl(url, {}, { pause }))).toBe(0);
  expect(new Set(waited)).toEqual(new Set([7_000]));
});

test("a server that lies with an older checkpoint than one that was kept, is found", async () => {
  const cut = filesOf(log, [5, 300]);
  const { url } = await serve(cut, { sizes: [5, 300] });
  const file = checkpointOf(log, 700);
  const checkpoint = openCheckpoint(file, { vkeys: [vkey()], verify: verifyNow });
  if (typeof checkpoint === "string") throw new Error(checkpoint);
  const result = await auditUrl(url, { kept: [{ name: "kept.note", checkpoint }] });
  expect([exitOf(result), said(result).codes]).toEqual([1, ["checkpoint-kept"]]);
});

test("a server that lies with another root, signed or not, is found", async () => {
  const root = new Uint8Array(32);
  const signed = instead("checkpoint", checkpointOf(log, 1_100, root));
  expect(await verdictOn(signed)).toEqual(["checkpoint-root"]);
  const note = Buffer.from(checkpointOf(log, 1_100));
  note[note.indexOf("\n1100\n") + 8] = 0x41;
  expect(await verdictOn(instead("checkpoint", note))).toEqual(["checkpoint-signature"]);
  const archived = instead("checkpoint/300", checkpointOf(log, 300, root));
  expect(await verdictOn(archived)).toEqual(["checkpoint-root"]);
});

test("a server that lies with a checkpoint by another key, or of another log, is found", async () => {
  const stranger = checkpointOf(log, 1_100, undefined, [signer(LOG_ID, testKey(9))]);
  expect(await verdictOn(instead("checkpoint", stranger))).toEqual(["checkpoint-untrusted"]);
  const other = checkpointOf(smallLog(OTHER_LOG_ID), 7);
  expect(await verdictOn(instead("checkpoint", other))).toEqual(["checkpoint-untrusted"]);
});

test("a server that lies with an older checkpoint under an archived one's size is found", async () => {
  const older = instead("checkpoint/700", checkpointOf(log, 300));
  expect(await verdictOn(older)).toEqual(["checkpoint-size"]);
});

test("a server that lies by withholding a tile or a bundle is found", async () => {
  const gone = (path: string): Lie => at(path, (answer) => answer.writeHead(404).end());
  expect(await verdictOn(gone("tile/0/001"))).toEqual(["tile-missing"]);
  expect(await verdictOn(gone("tile/1/000.p/4"))).toEqual(["tile-missing"]);
  expect(await verdictOn(gone("tile/entries/001"))).toEqual(["bundle-missing"]);
});

test("a server that lies with another log's entries is found", async () => {
  const other = longLog(512, OTHER_LOG_ID);
  const bundle = encodeBundle(other.entries.slice(256, 512));
  const codes = await verdictOn(instead("tile/entries/001", bundle));
  expect(codes).toContain("entry-foreign");
  expect(codes).toContain("entry-altered");
});

test("a server that lies with bodies that are cut, wrong, or too long is found, or gets no verdict", async () => {
  const bundle = FILES.get("tile/entries/001") ?? new Uint8Array();
  const cut = await verdictOn(instead("tile/entries/001", bundle.subarray(0, 5_000)));
  expect(cut).toContain("bundle-cut");
  expect(await verdictOn(instead("tile/0/001", new Uint8Array(8_191)))).toEqual(["tile-width"]);
  const long = instead("tile/0/001", new Uint8Array(100_000));
  expect(await verdictOn(long)).toEqual(["tile-width"]);
  const broken = at("tile/0/001", (answer) => {
    answer.writeHead(200, { "content-length": "8192" });
    answer.write(new Uint8Array(100), () => answer.destroy());
  });
  expect(await verdictOn(broken)).toMatch(/5 times/);
  const page = at("tile/0/001", (answer) => {
    answer.writeHead(200, { "content-type": "text/html" }).end("<p>sign in</p>");
  });
  expect(await verdictOn(page)).toMatch(/with a page/);
});

test("a server that lies by never ending, or never beginning, gets no verdict", async () => {
  const endless = at("tile/0/001", (answer) => {
    const more = (): void => {
      while (answer.write(new Uint8Array(65_536)));
    };
    answer.on("drain", more);
    more();
  });
  expect(await verdictOn(endless)).toEqual(["tile-width"]);
  expect(
    await verdictOn(
      at("tile/0/001", () => {}),
      HASTY,
    ),
  ).toMatch(/5 times/);
  const drip = at("tile/0/001", (answer) => {
    answer.writeHead(200, { "content-type": "application/octet-stream" });
    answer.flushHeaders();
  });
  expect(await verdictOn(drip, HASTY)).toMatch(/5 times/);
});

test("a server that lies by sending its visitors elsewhere gets no verdict", async () => {
  const away = at("tile/0/001", (answer) => {
    answer.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
  });
  expect(await verdictOn(away)).toMatch(/answers 302/);
});

test("a server that lies with a checkpoint that is none, or a list that is none, gets no verdict", async () => {
  expect(await verdictOn(instead("checkpoint", "hello"))).toMatch(/is none/);
  const list = "/v1checkpoints";
  expect(await verdictOn(instead(list, "[]"))).toMatch(/no list/);
  expect(await verdictOn(instead(list, '{"sizes":["01"]}'))).toMatch(/no list/);
  const endless = '{"sizes":["5"],"next":"5"}';
  expect(await verdictOn(instead(list, endless))).toMatch(/order of sizes/);
});

test.each([
  "http://ledger.example/logs/00112233445566778899aabbccddeeff",
  "https://ledger.example/logs/0011",
  "https://ledger.example/00112233445566778899aabbccddeeff",
  "https://user:word@ledger.example/logs/00112233445566778899aabbccddeeff",
  "https://ledger.example/logs/00112233445566778899aabbccddeeff?x=1",
  "https://[ledger/logs/00112233445566778899aabbccddeeff",
])("no question is asked of %s", async (url) => {
  await expect(httpSource(url, {})).rejects.toThrow(CannotLook);
});
