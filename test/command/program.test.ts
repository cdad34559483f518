import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readAll } from "node:stream/consumers";
import type { Command } from "commander";
import { afterAll, beforeAll, expect, test } from "vitest";
import { minutebook as program } from "../../src/command/program.ts";
import { VERSION } from "../../src/version.ts";
import { compiled } from "../compile.ts";
import { minutebook } from "./terminal.ts";

/** Somebody else's server: it answers everything with a page. */
let stranger: Server;
let address: string;

beforeAll(async () => {
  stranger = createServer((_, response) => response.end("<html>welcome</html>"));
  stranger.listen(0, "127.0.0.1");
  await once(stranger, "listening");
  address = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
});

afterAll(() => {
  stranger.close();
});

interface Placed {
  path: string[];
  command: Command;
}

function below(command: Command, path: string[] = []): Placed[] {
  const here = { path, command };
  return [here, ...command.commands.flatMap((next) => below(next, [...path, next.name()]))];
}

const commands = below(await program());

test.each(commands.map(({ path }) => [path.join(" ")]))(
  "%s --help has an example",
  async (name) => {
    const path = name.split(" ").filter((word) => word !== "");
    const { status, stdout, stderr } = await minutebook([...path, "--help"]);
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(`Example:\n  $ minutebook ${name}`);
    expect(stdout).toMatch(/Exit status: 0 /);
  },
);

test("an example names no option that there is not", async () => {
  for (const { path } of commands) {
    const { stdout } = await minutebook([...path, "--help"]);
    const call = /\$ minutebook (.*(?:\\\n.*)*)/.exec(stdout)?.[1] ?? "";
    const words = call.split(/\s+/);
    const named = commands
      .filter(({ path: other }) => other.every((word, i) => word === words[i]))
      .reduce((a, b) => (b.path.length > a.path.length ? b : a));
    const flags = words.filter((word) => word.startsWith("--"));
    const known = named.command.options.map(({ long }) => long);
    expect([call, flags.filter((flag) => !known.includes(flag))]).toEqual([call, []]);
  }
});

const ANSWERED = ["--server", "http://127.0.0.1:1", "--token", "t"];
const RUNNER = "uuid=u,id=7,tracking=hosted,type=instance,machine=small";

test.each<[code: string, args: string[]]>([
  ["invalid-usage", ["nonsense"]],
  ["invalid-usage", ["usage"]],
  ["invalid-usage", ["usage", "--log", "a", "--month", "november"]],
  ["invalid-usage", ["usage", "--log", "a", "--csv", "--json"]],
  ["invalid-usage", ["usage", "--log", "a", "--month", "2026-11", "--to", "2026-12"]],
  ["invalid-usage", ["log", "create", "--unique-id", "u", "--platform", "moon"]],
  ["invalid-usage", ["enrol", "--log", "a", "--runner", "uuid=u"]],
  ["invalid-usage", ["enrol", "--log", "a", "--runner", `${RUNNER},machine=other`]],
  ["invalid-usage", ["token", "--role", "emperor"]],
  ["invalid-usage", ["token", "--role", "viewer", "--hours", "25"]],
  ["invalid-usage", ["check", "surplus"]],
  ["no-server", ["log", "list", "--token", "t"]],
  ["no-server", ["log", "list", "--token", "t", "--server", "here"]],
  ["no-token", ["log", "list", "--server", "http://127.0.0.1:1"]],
  ["unreachable", ["log", "list", ...ANSWERED]],
  ["unreadable-file", ["card", "add", "/nowhere.json", "--log", "a", ...ANSWERED]],
  ["unreadable-file", ["setup", "package.json", ...ANSWERED]],
  ["unreadable-file", ["check", "--vkey", "log+00000000+AAAA"]],
  ["no-database", ["check", "--data", "/nowhere"]],
  ["no-database", ["bootstrap"]],
  ["invalid-configuration", ["token", "--data", "/nowhere", "--role", "viewer"]],
])("%s is said in one line, with status 2: %j", async (code, args) => {
  const { status, stdout, stderr } = await minutebook(args);
  expect(stderr).toMatch(new RegExp(`^${code}: [^\n]+\n$`));
  expect([status, stdout]).toEqual([2, ""]);
});

test("a server that is not Minutebook is named as that", async () => {
  const { status, stderr } = await minutebook(["log", "list"], {
    MINUTEBOOK_SERVER: address,
    MINUTEBOOK_TOKEN: "t",
  });
  expect([status, stderr]).toEqual([2, `unexpected-answer: ${address} did not answer in JSON\n`]);
});

test("a variable of the wrong shape is named, and its value is not shown", async () => {
  const { status, stderr } = await minutebook(["check"], { READER_DATABASE_URL: "secret" });
  expect(status).toBe(2);
  expect(stderr).toMatch(/^invalid-configuration: READER_DATABASE_URL: [^\n]+\n$/);
  expect(stderr).not.toContain("secret");
});

test("the program is what it says, down to its exit status", async () => {
  const main = compiled(new URL("../../src/main.ts", import.meta.url));
  const spawned = async (...args: string[]) => {
    const child = spawn(process.execPath, [main, ...args]);
    const [stdout, stderr] = [readAll(child.stdout), readAll(child.stderr)];
    const [status] = await once(child, "close");
    return [status, await stdout, await stderr];
  };
  expect(await spawned("--version")).toEqual([0, `${VERSION}\n`, ""]);
  const refused = [2, "", "invalid-usage: unknown command 'nonsense'\n"];
  expect(await spawned("nonsense")).toEqual(refused);
});
