/** docs/controls.md names only what is there, and each control with a place, a test and evidence. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { EXTRACTS } from "../../audit/extract/folder.ts";
import { minutebook } from "../../src/command/program.ts";
import { ROUTES } from "../../src/http/access.ts";
import { command } from "../audit/command.ts";
import { REMOVALS } from "./removals.ts";

const ROOT = join(import.meta.dirname, "../..");
const text = readFileSync(join(ROOT, "docs/controls.md"), "utf8");
const [matrix = "", duties = ""] = text.split("## What remains the operator's duty");

interface Control {
  id: string;
  enforced: string[];
  shown: string[];
  evidence: string[];
  cells: string[];
}

const ROW = /^\| ([A-Z]{2}-[0-9]+) \| .* \|$/gm;
const controls = [...matrix.matchAll(ROW)].map(([line, id = ""]): Control => {
  const cells = line.split(" | ");
  const [enforced = [], shown = [], evidence = []] = cells
    .slice(2)
    .map((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? ""));
  return { id, enforced, shown, evidence, cells };
});

const migrations = readdirSync(join(ROOT, "migrations"))
  .map((name) => readFileSync(join(ROOT, "migrations", name), "utf8"))
  .join("\n");

test("the matrix has every domain, and no control twice", () => {
  const ids = controls.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const domains = new Set(ids.map((id) => id.slice(0, 2)));
  expect([...domains].sort()).toEqual(
    ["AC", "CM", "IN", "IT", "KM", "MO", "OP", "PC", "QU", "RP", "RT"].sort(),
  );
});

test.each(controls)(
  "$id is enforced somewhere, shown by a test, and leaves evidence",
  (control) => {
    const { cells, enforced, evidence, shown } = control;
    expect(cells).toHaveLength(5);
    const files = [...enforced, ...shown].filter((code) => code.includes("/"));
    for (const file of files) expect(existsSync(join(ROOT, file)), file).toBe(true);
    expect(enforced.some((code) => code.includes("/"))).toBe(true);
    expect(shown.length).toBeGreaterThan(0);
    for (const file of shown) expect(file).toMatch(/^test\/.*\.test\.ts$/);
    expect(evidence.length).toBeGreaterThan(0);
  },
);

/** Each takes controls out and runs what they refuse. */
const REMOVING = ["test/controls/removed.test.ts", "test/controls/cut.test.ts"];

test.each(controls)("$id is taken out somewhere, and a test fails then", ({ id, shown }) => {
  const removals = REMOVALS.filter(({ control }) => control === id);
  const isTakenOut = removals.length > 0 || shown.some((file) => REMOVING.includes(file));
  expect(isTakenOut).toBe(true);
  for (const { file, instead, test, text, title } of removals) {
    expect(readFileSync(join(ROOT, file), "utf8").split(text)).toHaveLength(2);
    expect(instead).not.toBe(text);
    expect(shown).toContain(test);
    expect(readFileSync(join(ROOT, test), "utf8")).toContain(title);
  }
});

const GUARD = /^[a-z_]+$/;
/** Made by name for each of a list of tables, or by PostgreSQL for a table's primary key. */
const GENERATED = /_(?:append_only|pkey)$/;

test.each(controls)("$id names triggers and keys that migrations make", ({ enforced }) => {
  for (const guard of enforced.filter((code) => GUARD.test(code))) {
    const table = guard.replace(GENERATED, "");
    expect(
      migrations.includes(guard) || migrations.includes(`create table ${table} (`),
      guard,
    ).toBe(true);
  }
});

test("a file of evidence names the controls that name it, and each is some control's", () => {
  const naming = (file: string) => controls.filter(({ evidence }) => evidence.includes(file));
  for (const extract of EXTRACTS) {
    const ids = naming(`${extract.name}.ndjson`).map(({ id }) => id);
    expect(ids.sort(), extract.name).toEqual([...extract.controls].sort());
    expect(ids.length, extract.name).toBeGreaterThan(0);
  }
  const files = new Set(EXTRACTS.map(({ name }) => `${name}.ndjson`));
  const named = controls.flatMap(({ evidence }) => evidence).filter((each) => /ndjson$/.test(each));
  expect(named.filter((each) => !files.has(each))).toEqual([]);
});

test("every command that yields evidence is one, and has the options that are named", async () => {
  const program = await minutebook();
  for (const { evidence, id } of controls) {
    for (const code of evidence) {
      const [name, ...words] = code.split(" ");
      const path = words.filter((word) => /^[a-z]/.test(word));
      const options = words.filter((word) => /^--[a-z]/.test(word));
      const help = name === "minutebook" ? helpOf(program, path) : await auditHelp(name, path);
      for (const option of options) expect(help, `${id}: ${code}`).toContain(` ${option} `);
    }
  }
});

/** @throws Error where it is no command, or one that has others below it */
function helpOf(program: Command, path: readonly string[]): string {
  let at = program;
  for (const word of path) {
    const below = at.commands.find((each) => each.name() === word);
    if (below === undefined) throw new Error(`no command ${path.join(" ")}`);
    at = below;
  }
  if (at.commands.length > 0) throw new Error(`${path.join(" ")} is not all of a command`);
  return at.helpInformation();
}

async function auditHelp(name: string | undefined, path: readonly string[]): Promise<string> {
  if (name !== "minutebook-audit") return "";
  const { exit, out } = await command(...path, "--help");
  if (exit !== 0 || path.length === 0) throw new Error(`no command ${path.join(" ")}`);
  return out;
}

test("every metric and route that is evidence is one", () => {
  const telemetry = ["telemetry.ts", "telemetry-quota.ts"]
    .map((name) => readFileSync(join(ROOT, "src", name), "utf8"))
    .join("\n");
  const routes = ROUTES.map((route) => route.replaceAll(/:([a-z]+)/g, "{$1}"));
  for (const code of controls.flatMap(({ evidence }) => evidence)) {
    const [, metric] = /^minutebook_([a-z_]+)$/.exec(code) ?? [];
    if (metric !== undefined) {
      expect(telemetry).toMatch(new RegExp(`"(?:minutebook_)?${metric}"`));
    }
    if (code.includes("/")) {
      expect(routes).toContain(code.startsWith("/") ? `GET ${code}` : code);
    }
  }
});

test("a duty of the operator's says which controls rest on it", () => {
  const ids = controls.map(({ id }) => id);
  for (const [id] of duties.matchAll(/\b[A-Z]{2}-[0-9]+\b/g)) expect(ids).toContain(id);
});
