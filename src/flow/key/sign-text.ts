/** A text about a log, under the keys of its checkpoints that are in force now. */
import { noteOf } from "../../core/note.ts";
import { Problem } from "../../core/problem.ts";
import { signatureLine } from "../../core/signature-line.ts";
import { encodeUtf8 } from "../../core/text.ts";
import type { Keyring } from "./keyring.ts";
import { inForce } from "./standing.ts";

/**
 * C2SP signed-note.
 *
 * @param textOf by the log's origin; no text of a checkpoint
 * @throws Problem `not-found`, `signer-unavailable`, `busy`
 */
export async function signText(
  keyring: Pick<Keyring, "standing">,
  log: string,
  textOf: (origin: string) => string,
): Promise<string> {
  const [keys] = await keyring.standing([log]);
  if (keys === undefined) throw new Problem("not-found");
  const { origin } = keys;
  const text = textOf(origin);
  const lines = inForce(keys.checkpoint).map(async (key) => {
    return signatureLine(origin, key.publicKey, await key.sign(encodeUtf8(text)));
  });
  return noteOf(text, await Promise.all(lines));
}
