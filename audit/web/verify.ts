/** Ed25519 by WebCrypto (FIPS 186-5, RFC 8032), for browsers that have it. */
import { ED25519_ANSWER } from "../self-test/self-test.ts";

/** Like core's Verify, but it takes its time. Answers false rather than throw. */
export type WebVerify = (
  signature: Uint8Array,
  message: Uint8Array,
  publicKey: Uint8Array,
) => Promise<boolean>;

const ALGORITHM = "Ed25519";

/** Undefined where it is not there, as on pages without TLS, or does not know the known answers. */
export async function openWebVerify(
  subtle: SubtleCrypto | undefined = globalThis.crypto?.subtle,
): Promise<WebVerify | undefined> {
  if (subtle === undefined) return undefined;
  const verify = verifyBy(subtle);
  const { message, publicKey, signature } = ED25519_ANSWER;
  const flipped = message.map((byte) => byte ^ 1);
  const good = await verify(signature, message, publicKey);
  return good && !(await verify(signature, flipped, publicKey)) ? verify : undefined;
}

function verifyBy(subtle: SubtleCrypto): WebVerify {
  const keys = new Map<string, Promise<CryptoKey>>();
  const keyOf = (publicKey: Uint8Array): Promise<CryptoKey> => {
    const name = publicKey.join();
    const bytes = new Uint8Array(publicKey);
    const key = keys.get(name) ?? subtle.importKey("raw", bytes, ALGORITHM, false, ["verify"]);
    keys.set(name, key);
    return key;
  };
  return async (signature, message, publicKey) => {
    // Copies: what is verified must not change while it is.
    const [seal, text] = [new Uint8Array(signature), new Uint8Array(message)];
    try {
      return await subtle.verify(ALGORITHM, await keyOf(publicKey), seal, text);
    } catch {
      return false; // no Ed25519, or a key that it does not take
    }
  };
}
