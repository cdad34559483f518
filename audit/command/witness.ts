/** `minutebook-audit witness`: a witness of one's own (C2SP tlog-witness). */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { statSync, writeFileSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { formatVkey, type Signer, type Vkey } from "../../src/core/note.ts";
import { CannotLook } from "../finding.ts";
import { readVkeys } from "../given.ts";
import { readSigningKey } from "../signing-key.ts";
import { startWitness } from "../witness/server.ts";
import { WitnessStore } from "../witness/store.ts";
import { type AddCommand, collect, type Exit, type Output, reason } from "./output.ts";

interface WitnessOptions {
  key: string;
  name: string;
  state?: string;
  log: string[];
  host: string;
  port: number;
  makeKey?: true;
}

const HELP = `
It cosigns a checkpoint of the logs that are named if it follows from the last that it cosigned, and keeps
it, durably, before it answers. The folder is its memory: back up the key, never the folder. Who restores
an old folder, or starts with an empty one, takes a new key, for the old one could sign a second truth.
Several processes may share a folder. Put TLS before it where it is reached from elsewhere.

Addresses: POST /add-checkpoint, GET /<hex SHA-256 of a log's origin>/checkpoint

Examples:
  minutebook-audit witness --make-key --key witness.pem --name witness.auditor.example
  minutebook-audit witness --key witness.pem --name witness.auditor.example --state ./state --log ledger.vkey
`;

export const addWitness: AddCommand = (program, output, done) => {
  setting(program.command("witness"))
    .description("cosign a log's checkpoints, for as long as the log only grows")
    .requiredOption("--key <file>", "its Ed25519 key (PKCS #8 PEM), for nobody else to read")
    .requiredOption("--name <name>", "its name in signatures: an address without https://")
    .addHelpText("after", HELP)
    .action(async (options: WitnessOptions) => {
      done(options.makeKey ? makeKey(options, output) : await witness(options, output));
    });
};

function setting(command: Command): Command {
  return command
    .option("--make-key", "make the key, print its vkey, and end")
    .option("--state <folder>", "what it has cosigned; must be there")
    .option("--log <vkey or file>", "the key of a log to follow; may come again", collect, [])
    .option("--host <address>", "where to listen", "127.0.0.1")
    .option("--port <port>", "0 for whichever is free", portOf, 8_080);
}

/** Never over a key that is there. */
function makeKey({ key, name }: WitnessOptions, output: Output): Exit {
  const { privateKey } = generateKeyPairSync("ed25519");
  vkeyOf(name, new Uint8Array(32));
  const pem = privateKey.export({ format: "pem", type: "pkcs8" });
  try {
    writeFileSync(key, pem, { flag: "wx", mode: 0o600, flush: true });
  } catch (error) {
    throw new CannotLook(`${key} cannot be made, or is there already`, { cause: error });
  }
  output.out(`${vkeyOf(name, readSigningKey(key).publicKey)}\n`);
  return 0;
}

async function witness(options: WitnessOptions, output: Output): Promise<Exit> {
  const { host, key, log, name, port, state } = options;
  if (state === undefined) throw new CannotLook("where is its memory? give --state FOLDER");
  const logs = logsOf(log.flatMap(readVkeys));
  const signer = signerOf(key, name);
  const vkey = vkeyOf(name, signer.publicKey);
  const now = Date.now;
  const store = new WitnessStore({ folder: state, origins: [...logs.keys()], now });
  const onError = (error: unknown): void => output.err(`not cosigned: ${reason(error)}\n`);
  const server = await startWitness({ host, port, logs, signer, store, now, onError });
  output.out(`witness ${vkey}\n${Array.from(logs.keys(), (origin) => `log ${origin}\n`).join("")}`);
  output.out(`listening on ${server.url}\n`);
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await server.close();
  return 0;
}

function logsOf(vkeys: readonly Vkey[]): Map<string, Vkey[]> {
  if (vkeys.length === 0) throw new CannotLook("which logs? give their keys by --log");
  const logs = new Map<string, Vkey[]>();
  for (const vkey of vkeys) logs.set(vkey.name, [...(logs.get(vkey.name) ?? []), vkey]);
  return logs;
}

function signerOf(path: string, name: string): Signer {
  const key = readSigningKey(path);
  if ((statSync(path).mode & 0o077) !== 0) {
    throw new CannotLook(`${path} can be read by others: chmod 600 ${path}`);
  }
  return { name, ...key };
}

function vkeyOf(name: string, publicKey: Uint8Array): string {
  try {
    return formatVkey(name, publicKey, "cosignature");
  } catch (error) {
    throw new CannotLook(`${name} is no name of a key`, { cause: error });
  }
}

function portOf(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 65_536;
  if (port > 65_535) throw new InvalidArgumentError("Expected a port from 0 to 65535.");
  return port;
}
