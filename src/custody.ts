/** Private keys in files: read only where nobody but their owner can, made once in development. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  type Stats,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "./config-error.ts";
import type { Purpose } from "./core/log-key.ts";
import { decodeBase64 } from "./core/text.ts";
import type { SigningKey } from "./flow/key/signing-key.ts";
import type { HeldKeys } from "./flow/key/standing.ts";
import { signerOf } from "./flow/report/signature.ts";

const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;
const SECRET_BYTES = 32;
const WEBHOOK_SECRETS_MAX = 2;

/** @throws ConfigError when the file is missing, open to others or replaceable, or no Ed25519 key in PKCS #8 PEM */
export function readSigningKey(file: string): KeyObject {
  const key = parse(file, readSecret(file));
  if (key.asymmetricKeyType !== "ed25519") throw new ConfigError(`${file}: not an Ed25519 key`);
  return key;
}

/** A secret of at least 32 bytes of base64. */
export function readSecretKey(file: string): Uint8Array {
  const secret = Buffer.from(readSecret(file).trim(), "base64");
  if (secret.length < SECRET_BYTES) throw new ConfigError(`${file}: fewer than 32 bytes`);
  return secret;
}

/**
 * Of a receiver of notifications, one on each line: the current one, and while it is replaced the former
 * behind it (Standard Webhooks 1.0.0, "Signature scheme": 24 to 64 bytes).
 *
 * @throws ConfigError as `readSigningKey` does, and when a line is none
 */
export function readWebhookSecrets(file: string): Uint8Array[] {
  const lines = readSecret(file).trim().split(/\r?\n/);
  if (lines.length > WEBHOOK_SECRETS_MAX) throw new ConfigError(`${file}: more than two secrets`);
  return lines.map((line) => {
    const [, text = ""] = /^whsec_(.+)$/.exec(line) ?? [];
    const secret = decodeBase64(text);
    if (secret === undefined || secret.length < 24 || secret.length > 64) {
      throw new ConfigError(`${file}: not whsec_ and 24 to 64 bytes of base64 on each line`);
    }
    return secret;
  });
}

/** Reads the key, or makes it where there is none yet: of the embedded default only. */
export function ensureSigningKey(file: string): KeyObject {
  ensure(file, () => {
    const { privateKey } = generateKeyPairSync("ed25519");
    return privateKey.export({ format: "pem", type: "pkcs8" }).toString();
  });
  return readSigningKey(file);
}

export function ensureSecretKey(file: string): Uint8Array {
  ensure(file, () => `${randomBytes(SECRET_BYTES).toString("base64")}\n`);
  return readSecretKey(file);
}

export function rawPublicKey(key: KeyObject): Uint8Array {
  const { x } = createPublicKey(key).export({ format: "jwk" });
  return new Uint8Array(Buffer.from(x ?? "", "base64url"));
}

export function heldKey(key: KeyObject): SigningKey {
  const sign = signerOf(key);
  return { publicKey: rawPublicKey(key), sign: async (message) => sign(message) };
}

/** Keys of this process are always at hand. */
export function heldKeys(keys: {
  checkpoint: readonly KeyObject[];
  receipt: readonly KeyObject[];
  former?: Readonly<Partial<Record<Purpose, KeyObject | undefined>>>;
}): HeldKeys {
  const { checkpoint, receipt } = keys.former ?? {};
  return {
    checkpoint: keys.checkpoint.map(heldKey),
    receipt: keys.receipt.map(heldKey),
    former: { checkpoint: checkpoint && heldKey(checkpoint), receipt: receipt && heldKey(receipt) },
    available: () => true,
  };
}

function readSecret(file: string): string {
  let descriptor: number;
  try {
    descriptor = openSync(file, "r");
  } catch (error) {
    throw new ConfigError(`${file}: cannot be read`, { cause: error });
  }
  try {
    // Asked of the open file, so that what was judged is what is read.
    const stats = fstatSync(descriptor);
    const folders = [dirname(file), dirname(realpathSync(file))].map((folder) => statSync(folder));
    const objection = objectionTo(stats, folders, process.getuid?.() ?? stats.uid);
    if (objection !== undefined) throw new ConfigError(`${file}: ${objection}`);
    return readFileSync(descriptor, "utf8");
  } finally {
    closeSync(descriptor);
  }
}

type Guarded = Pick<Stats, "mode" | "uid">;

/**
 * Why a secret in this file is none, or could be replaced: who may write to a folder puts another file
 * there under the same name, unless the folder is sticky.
 *
 * @param folders that of the file, and where it is a link, that of what it leads to
 * @param self whose process reads it; root may do all that anyway
 */
export function objectionTo(
  file: Guarded,
  folders: readonly Guarded[],
  self: number,
): string | undefined {
  const isOurs = ({ uid }: Guarded): boolean => uid === self || uid === 0;
  if ((file.mode & OTHERS) !== 0) return "open to others; chmod 600";
  if (!isOurs(file)) return "somebody else's; chown it";
  if (!folders.every(isOurs)) return "in somebody else's folder; chown that";
  const replaceable = folders.some(({ mode }) => (mode & OTHERS_WRITE) !== 0 && !(mode & STICKY));
  return replaceable ? "in a folder that others may write to; chmod 700" : undefined;
}

function parse(file: string, pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    // The library's message may quote the input; only the cause keeps it.
    throw new ConfigError(`${file}: not a private key in PEM`, { cause: error });
  }
}

/** Whole and then linked into place: of two processes that start at once one makes the key, both read it. */
function ensure(file: string, make: () => string): void {
  if (existsSync(file)) return;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  const descriptor = openSync(draft, "wx", 0o600);
  writeSync(descriptor, make());
  fsyncSync(descriptor);
  closeSync(descriptor);
  try {
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    unlinkSync(draft);
  }
}
