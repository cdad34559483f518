/** What agents signed, read here and verified by WebCrypto, which is several times as fast as point operations. */
import type { Verify } from "../../src/core/ed25519.ts";
import type { Sha256 } from "../../src/core/hash.ts";
import { type Reader, readHere } from "../reading/reader.ts";
import type { WebVerify } from "./verify.ts";

type Question = Parameters<Verify>;

/**
 * Reading is synchronous and WebCrypto is not: so all is read twice, once to hear which signatures are
 * asked about, and again to answer. What the verdict excludes beforehand is never asked.
 */
export function readByWebCrypto(hash: Sha256, verify: WebVerify): Reader {
  let asked: Question[] = [];
  let answers: boolean[] = [];
  const recorder = readHere({
    hash,
    verify: (...question) => {
      asked.push(question);
      return false;
    },
  });
  const replayer = readHere({ hash, verify: () => answers.shift() ?? false });
  const read: Reader["read"] = async (what) => {
    asked = [];
    await recorder.read(what);
    answers = await Promise.all(asked.map((question) => verify(...question)));
    return replayer.read(what);
  };
  // One after the other, for questions and answers are of one reading.
  let last: Promise<unknown> = Promise.resolve();
  return {
    learn: (kid, publicKey) => {
      recorder.learn(kid, publicKey);
      replayer.learn(kid, publicKey);
    },
    read: (what) => {
      const reading = last.then(() => read(what));
      last = reading.catch(() => {}); // whoever asked for it learns of it
      return reading;
    },
  };
}
