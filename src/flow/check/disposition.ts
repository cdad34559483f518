/** Lines that account for reports without an entry of their own: what each may say (BYTES §3). */
import type { DispositionLine, Entry, EntryOf } from "../../core/entry.ts";
import type { Sha256 } from "../../core/hash.ts";
import type { Prefix } from "../../core/prefix.ts";
import { encodeBase64 } from "../../core/text.ts";
import { type Cited, REUSED, readSigned } from "./derive.ts";
import type { Misjudged } from "./event.ts";

type Disposition = EntryOf<"disposition">;

/** No proper reports, whose counter could be read all the same. */
const UNFIT: readonly string[] = ["non-canonical", "schema"];
/** What was signed for another log uses no counter of this one. */
const REFUSED = [...UNFIT, "wrong-log"];

/** `cited` has, besides the entries that lines name, the accounts of counters that came again. */
export function* disposition(
  entry: Disposition,
  prefix: Prefix,
  cited: Cited,
  hash: Sha256,
): Generator<Misjudged> {
  const { kid, lines } = entry.body;
  if (prefix.key(kid) === undefined) yield ["kid: an enrolled key", `kid ${kid}`];
  let last = 1n;
  for (const line of lines) {
    const { code, counter, index } = line;
    if (BigInt(counter) < last) yield [`counter from ${last}`, `counter ${counter}`];
    last = BigInt(counter);
    const named = index === "" ? undefined : cited.get(BigInt(index));
    if (index !== "" && named === undefined) yield ["index: an entry before", `index ${index}`];
    if (code === REUSED) {
      if (named === undefined) yield* refusedToo(line, entry, cited);
      else if (named.kind !== "usage") yield* itsOwn(line, entry, named, hash);
    } else if (code === "duplicate") {
      if (named?.kind !== "usage") yield ["index: a usage", `index ${index}`];
    } else if (!REFUSED.includes(code)) {
      yield ["code: one that accounts for a report", `code ${code}`];
    } else if (index !== "") {
      yield ["index: none", `index ${index}`];
    }
  }
}

/** A counter's reuse is noted besides: what was refused has a line of its own, here or a page before. */
function* refusedToo(
  { counter, digest }: DispositionLine,
  by: Disposition,
  cited: Cited,
): Generator<Misjudged> {
  const lines = [by, ...cited.values()].flatMap((entry) =>
    entry.kind === "disposition" && entry.body.kid === by.body.kid ? entry.body.lines : [],
  );
  const refused = lines.some(
    (line) => line.counter === counter && line.digest === digest && UNFIT.includes(line.code),
  );
  if (!refused) yield ["an account of the report", `only that counter ${counter} came again`];
}

/** Of a duplicate the note is the only line, and names the usage; any other entry is the report's own. */
function* itsOwn(
  { counter, digest, index }: DispositionLine,
  by: Disposition,
  named: Entry,
  hash: Sha256,
): Generator<Misjudged> {
  const signed = "jws" in named.body ? readSigned(named.body.jws, hash) : undefined;
  const own =
    signed?.kid === by.body.kid &&
    signed.report.counter === counter &&
    encodeBase64(signed.digest) === digest;
  if (!own) yield ["index: a usage, or the report's own entry", `index ${index}`];
}
