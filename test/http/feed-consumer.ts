/**
 * A consumer of the feed that takes page after page and keeps each with the cursor behind it, until there is
 * no more: `feed-consumer.ts URL TOKEN LOG FOLDER [PAGES]`. After so many pages it stays within the next one and
 * says a line: whoever is to be killed there is not over before the signal comes.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";

const [url = "", token = "", log = "", folder = "", pages = ""] = process.argv.slice(2);
const path = join(folder, "kept.json");

interface Kept {
  cursor: string;
  events: unknown[];
}

const kept: Kept = existsSync(path)
  ? JSON.parse(readFileSync(path, "utf8"))
  : { cursor: "0", events: [] };

const search = new URLSearchParams({ log, cursor: kept.cursor, limit: "3" });
const headers = { authorization: `Bearer ${token}`, accept: "application/x-ndjson" };
const response = await fetch(`${url}/v1/feed?${search}`, { headers });
if (!response.ok || response.body === null) throw new Error(`answered ${response.status}`);

let page: unknown[] = [];
let left = pages === "" ? Number.POSITIVE_INFINITY : Number(pages);
const body = Readable.fromWeb(response.body as ReadableStream);
for await (const line of createInterface({ input: body })) {
  const value = JSON.parse(line) as { next_cursor?: string };
  if (value.next_cursor === undefined) {
    page.push(value);
    continue;
  }
  kept.events.push(...page);
  kept.cursor = value.next_cursor;
  page = [];
  // In one step: whoever dies has the page and the cursor behind it, or neither.
  writeFileSync(`${path}.new`, JSON.stringify(kept));
  if (left === 0) {
    process.stdout.write(`${kept.cursor}\n`);
    setInterval(() => undefined, 60_000); // it lives on, whether more comes or not
    await new Promise(() => undefined);
  }
  renameSync(`${path}.new`, path);
  left -= 1;
}
