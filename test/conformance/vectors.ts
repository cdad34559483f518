/** The published vectors that this repository is held to; they are not part of it. */
import type { Vector } from "./vector.ts";
import { browserVectors } from "./vectors/browser.ts";
import { jsonVectors } from "./vectors/json.ts";
import { logVectors } from "./vectors/log.ts";
import { noteVectors } from "./vectors/note.ts";
import { proofVectors } from "./vectors/proof.ts";
import { signatureVectors } from "./vectors/signature.ts";
import { treeVectors } from "./vectors/tree.ts";
import { witnessVectors } from "./vectors/witness.ts";
import { witnessServerVectors } from "./vectors/witness-server.ts";

/**
 * Every vector of the folder, one by one, each with its outcome: some 3,000, in seconds. Throws when
 * a file is not there: vectors that could not be looked at must not pass for vectors that hold.
 */
export async function* checkVectors(folder: string): AsyncGenerator<Vector, void> {
  yield* jsonVectors(folder);
  yield* signatureVectors(folder);
  yield* treeVectors(folder);
  yield* logVectors(folder);
  yield* noteVectors(folder);
  yield* proofVectors(folder);
  yield* witnessVectors(folder);
  yield* witnessServerVectors(folder);
  yield* browserVectors(folder);
}
