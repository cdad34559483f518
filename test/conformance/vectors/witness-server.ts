/** The published sequence of a witness, against our own over HTTP, with its memory on disk. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyNow } from "../../../audit/native.ts";
import { startWitness } from "../../../audit/witness/server.ts";
import { nameOf, WitnessStore } from "../../../audit/witness/store.ts";
import { formatVkey, noteOf, openNote, parseVkey } from "../../../src/core/note.ts";
import { decodeHex } from "../../../src/core/text.ts";
import { parseAddCheckpoint } from "../../../src/core/witness.ts";
import { testKey } from "../../signing.ts";
import { readJson, type Vector, vector } from "../vector.ts";

interface Sequence {
  log_public_key_hex: string;
  origin: string;
  cases: { request_body: string; status: number; spec_status?: number; assert: string }[];
}

const WITNESS = { name: "example.com/witness", ...testKey(7) };

export async function* witnessServerVectors(folder: string): AsyncGenerator<Vector> {
  const published = readJson<Sequence>(folder, "witness/add_checkpoint_sequence.json");
  const { log_public_key_hex, origin } = published;
  const vkey = parseVkey(formatVkey(origin, decodeHex(log_public_key_hex) ?? new Uint8Array()));
  const state = mkdtempSync(join(tmpdir(), "witness-conformance-"));
  const store = new WitnessStore({ folder: state, origins: [origin], now: Date.now });
  const errors: unknown[] = [];
  const server = await startWitness({
    host: "127.0.0.1",
    port: 0,
    signer: WITNESS,
    logs: new Map([[origin, vkey === undefined ? [] : [vkey]]]),
    store,
    now: Date.now,
    onError: (error) => errors.push(error),
  });
  try {
    yield* sequence(published, server.url);
    yield vector(
      "witness over HTTP: nothing failed inside",
      errors.length === 0,
      String(errors[0]),
    );
  } finally {
    await server.close();
    rmSync(state, { recursive: true });
  }
}

async function* sequence({ cases, origin }: Sequence, url: string): AsyncGenerator<Vector> {
  for (const [at, { request_body, status, spec_status, assert }] of cases.entries()) {
    const title = `witness over HTTP ${at + 1}`;
    const address = `${url}/add-checkpoint`;
    const response = await fetch(address, { method: "POST", body: request_body });
    const body = await response.text();
    const found = `${response.status} ${JSON.stringify(body)}`;
    yield vector(title, response.status === (spec_status ?? status), found);
    if (response.status === 200)
      yield vector(`${title} is cosigned`, isCosigned(request_body, body));
    if (response.status !== 409) continue;
    const same = assert === `body == ${JSON.stringify(body)}`;
    const type = response.headers.get("content-type") === "text/x.tlog.size";
    yield vector(`${title} says its size`, same && type, found);
  }
  const shown = await fetch(`${url}/${nameOf(origin)}/checkpoint`);
  yield vector(
    "witness over HTTP shows its last",
    (await shown.text()).startsWith(`${origin}\n5\n`),
  );
}

function isCosigned(request: string, line: string): boolean {
  const checkpoint = parseAddCheckpoint(request)?.checkpoint ?? "";
  const text = checkpoint.slice(0, checkpoint.lastIndexOf("\n\n") + 1);
  const key = parseVkey(formatVkey(WITNESS.name, WITNESS.publicKey, "cosignature"));
  const opened = openNote(noteOf(text, [line]), key === undefined ? [] : [key], verifyNow);
  return "signatures" in opened;
}
