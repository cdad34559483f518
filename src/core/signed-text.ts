/** What is signed of a document: the text of a note (C2SP signed-note) that can be no checkpoint's. */
import { sha256 } from "./hash.ts";
import { encodeBase64, encodeUtf8 } from "./text.ts";

/**
 * Three lines: `<origin>/<form>`, which is the origin of no log, a name, which is no size, and the base64 SHA-256
 * of the document.
 *
 * @throws Error on a line break in an origin or a name, which would be read as another line
 */
export function signedText(
  { form, name, origin }: { form: "export" | "statement"; name: string; origin: string },
  json: string,
): string {
  if (/[\n\r]/.test(origin)) throw new Error("signed text: not an origin");
  if (/[\n\r]/.test(name)) throw new Error("signed text: not a name");
  return `${origin}/${form}\n${name}\n${encodeBase64(sha256(encodeUtf8(json)))}\n`;
}
