/** RFC 8785 files: those without numbers and null by our own code, the others by refusing them. */
import canonicalize from "canonicalize";
import { canonical, parseCanonical } from "../../../src/core/json.ts";
import { encodeHex, encodeUtf8 } from "../../../src/core/text.ts";
import { readBytes, readText, type Vector, vector } from "../vector.ts";

const OURS = ["french", "unicode", "weird"];
const WITH_NUMBERS = ["arrays", "structures", "values"];

export function* jsonVectors(folder: string): Generator<Vector> {
  for (const name of OURS) {
    const output = readBytes(folder, `jcs/output/${name}.json`);
    const value = JSON.parse(readText(folder, `jcs/input/${name}.json`));
    const written = canonical(value);
    yield vector(
      `jcs/${name}`,
      encodeHex(encodeUtf8(written)) === outputHex(folder, name),
      written,
    );
    yield vector(`jcs/${name} is read back`, parseCanonical(output) !== undefined);
  }
  for (const name of WITH_NUMBERS) {
    // The package is the oracle of our own writer: it is held to the files that ours refuses.
    const written = canonicalize(JSON.parse(readText(folder, `jcs/input/${name}.json`))) ?? "";
    const same = encodeHex(encodeUtf8(written)) === outputHex(folder, name);
    yield vector(`jcs/${name} by the canonicalize package`, same, written);
    const read = parseCanonical(readBytes(folder, `jcs/output/${name}.json`));
    yield vector(`jcs/${name} is refused: signed JSON holds no numbers`, read === undefined);
  }
}

function outputHex(folder: string, name: string): string {
  return readText(folder, `jcs/outhex/${name}.txt`).replaceAll(/\s/g, "");
}
