import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { Journal, type Journaled } from "../../src/agent/journal.ts";

const root = mkdtempSync(join(tmpdir(), "minutebook-journal-"));
let folders = 0;

afterAll(() => {
  rmSync(root, { recursive: true });
});

/** A journal of words, whose snapshot is all of them. */
class Words implements Journaled<string[]> {
  all: string[] = [];
  snapshot = () => this.all;
  apply = (words: string[]) => {
    this.all = [...this.all, ...words];
  };
}

function newFolder(): string {
  folders += 1;
  return join(root, String(folders));
}

function open(folder: string, segmentBytes = 1_000_000) {
  const state = new Words();
  const journal = new Journal({ folder, schema: z.array(z.string()), state, segmentBytes });
  return { state, journal };
}

function written(folder: string, words: string[], segmentBytes?: number): void {
  const { journal } = open(folder, segmentBytes);
  for (const word of words) journal.append([word]);
  journal.close();
}

const lastSegment = (folder: string) => join(folder, readdirSync(folder).sort().at(-1) ?? "");

test("what was appended is there again, over as many segments as it takes", () => {
  const folder = newFolder();
  const words = Array.from({ length: 50 }, (_, i) => `word ${i}`);
  for (const word of words) written(folder, [word], 300);
  const { state, journal } = open(folder);
  expect(state.all).toEqual(words);
  expect(journal.segments().length).toBeGreaterThan(2);
  expect([...journal.read(2)][0]).toEqual(words.slice(0, [...journal.read(1)].length - 1));
  journal.close();
});

test("a commit that was torn at any byte is gone whole, and the journal goes on", () => {
  const folder = newFolder();
  written(folder, ["first", "second"]);
  const before = statSync(lastSegment(folder)).size;
  written(folder, ["third"]);
  for (let size = before; size < statSync(lastSegment(folder)).size; size++) {
    const torn = newFolder();
    cpSync(folder, torn, { recursive: true });
    truncateSync(lastSegment(torn), size);
    written(torn, ["again"]);
    const { state, journal } = open(torn);
    expect(state.all).toEqual(["first", "second", "again"]);
    journal.close();
  }
});

test("a last commit whose bytes came out as zeros is gone whole", () => {
  const folder = newFolder();
  written(folder, ["first"]);
  appendFileSync(lastSegment(folder), Buffer.concat([Buffer.alloc(100), Buffer.from("\n")]));
  const { state, journal } = open(folder);
  expect(state.all).toEqual(["first"]);
  journal.close();
});

describe("damage that no crash makes", () => {
  test("in an earlier commit is named, never skipped", () => {
    const folder = newFolder();
    written(folder, ["first", "second", "third"]);
    const path = lastSegment(folder);
    writeFileSync(path, readFileSync(path, "utf8").replace("second", "secund"));
    expect(() => open(folder)).toThrow(/byte \d+: not as it was written/);
  });

  test("in an earlier segment is named when it is read", () => {
    const folder = newFolder();
    written(folder, ["first", "second", "third", "fourth"], 1);
    const path = join(folder, "00000002.jsonl");
    writeFileSync(path, readFileSync(path, "utf8").replace("second", "secund"));
    const { journal } = open(folder);
    expect(() => [...journal.read(2)]).toThrow(/00000002\.jsonl, byte \d+/);
    journal.close();
  });

  test("in a snapshot is named", () => {
    const folder = newFolder();
    written(folder, []);
    truncateSync(lastSegment(folder), 10);
    expect(() => open(folder)).toThrow(/byte 0/);
  });
});

test("no segment begins with a snapshot that could not be read: the last one goes on", () => {
  const folder = newFolder();
  const words = Array.from({ length: 40 }, (_, i) => `word ${i}`);
  const options = { folder, schema: z.array(z.string()), segmentBytes: 1, snapshotBytesMax: 120 };
  const journal = new Journal({ ...options, state: new Words() });
  for (const word of words) journal.append([word]);
  const last = journal.segments().length;
  expect(last).toBeGreaterThan(3);
  expect(last).toBeLessThan(20);
  journal.close();
  const { state, journal: again } = open(folder);
  expect(state.all).toEqual(words);
  again.close();
});

test("a snapshot longer than any commit is read again", () => {
  const folder = newFolder();
  const long = "x".repeat(3_000_000);
  written(folder, ["first", long, long, long, "last"], 1);
  const { state, journal } = open(folder);
  expect(state.all).toEqual(["first", long, long, long, "last"]);
  journal.close();
});
