import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { cosign } from "../../src/core/cosignature.ts";
import { formatVkey, linesOf } from "../../src/core/note.ts";
import { decodeUtf8, encodeUtf8 } from "../../src/core/text.ts";
import { testKey } from "../signing.ts";
import { checkpointOf, type Files, filesOf, signer, vkeyText } from "./archive.ts";
import { command, openHome, store } from "./command.ts";
import { longLog } from "./honest.ts";
import { LOG_ID } from "./log.ts";
import { serveFiles } from "./server.ts";

const home = openHome();
afterAll(() => home.remove());
const log = longLog(300);
const FILES = filesOf(log);
const VKEY = ["--vkey", vkeyText()];

let folders = 0;
let folder = "";
beforeEach(() => {
  folder = join(home.folder, String(folders++));
});
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function serve(files: Files): Promise<{ url: string }> {
  const server = await serveFiles(files);
  closing.push(server.close);
  return server;
}

/** The checkpoint that the copy has. */
function held(): Buffer {
  return readFileSync(join(folder, LOG_ID, "checkpoint/300"));
}

const WITNESS = signer("witness", testKey(40));
const WITNESS_VKEY = formatVkey(WITNESS.name, WITNESS.publicKey, "cosignature");

/** Lines of a checkpoint of 300 entries: the witness's, and whoever's. */
function lines(...more: string[]): Uint8Array {
  const note = decodeUtf8(checkpointOf(log, 300)) ?? "";
  return encodeUtf8(note + more.join(""));
}

function cosignature(): string {
  const text = linesOf(decodeUtf8(checkpointOf(log, 300)) ?? "")?.text ?? "";
  return cosign(WITNESS, text, 1_795_000_000n);
}

function junk(i: number): string {
  return `\u2014 junk-${i} ${Buffer.alloc(68, i).toString("base64")}\n`;
}

test("signatures that a copy holds are added to and never lost, whatever a server brings", async () => {
  const policy = join(home.folder, "policy");
  writeFileSync(policy, `witness w ${WITNESS_VKEY}\nquorum w\n`);
  const many = Array.from({ length: 99 }, (_, i) => junk(i));
  const bad = cosignature().replace(/.{8}\n$/, "AAAAAAA=\n");
  for (const shown of [[cosignature()], many.slice(0, 3), many, [bad], []]) {
    const { url } = await serve(new Map(FILES).set("checkpoint/300", lines(...shown)));
    expect((await command("bundle", url, folder, ...VKEY)).exit).toBe(0);
  }
  const kept = decodeUtf8(held()) ?? "";
  expect(kept).toContain(cosignature());
  expect(linesOf(kept)?.lines).toHaveLength(100);
  expect((await command("verify", folder, ...VKEY, "--policy", policy)).exit).toBe(0);
});

test("of what a server brings known keys come first, and junk in their names not at all", async () => {
  const policy = join(home.folder, "known");
  writeFileSync(policy, `witness w ${WITNESS_VKEY}\nquorum w\n`);
  const many = Array.from({ length: 97 }, (_, i) => junk(i));
  const bad = cosignature().replace(/.{8}\n$/, "AAAAAAA=\n");
  const trust = [...VKEY, "--policy", policy];
  for (const shown of [many, [bad], [junk(97), junk(98), cosignature()]]) {
    const { url } = await serve(new Map(FILES).set("checkpoint/300", lines(...shown)));
    expect((await command("bundle", url, folder, ...trust)).exit).toBe(0);
  }
  const kept = held();
  expect(kept.equals(lines(...many, cosignature(), junk(97)))).toBe(true);
  expect((await command("verify", folder, ...trust)).exit).toBe(0);
});

test("a file of signatures in the copy is added to as well", async () => {
  const [a, b] = [join(home.folder, "a"), join(home.folder, "b")];
  const path = "cosignature/300/00000000";
  store(a, new Map(FILES).set(path, encodeUtf8(junk(1))));
  store(b, new Map(FILES).set(path, encodeUtf8(junk(2))));
  for (const from of [a, b, a]) {
    expect((await command("bundle", join(from, LOG_ID), folder, ...VKEY)).exit).toBe(0);
  }
  expect(readFileSync(join(folder, LOG_ID, path), "utf8")).toBe(junk(1) + junk(2));
});
