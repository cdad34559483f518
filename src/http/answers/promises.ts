/** What a receipt's promises are kept with. */
import { z } from "zod";
import { ENTRY_BYTES_MAX } from "../../core/entry.ts";
import { HashText, IntegerText } from "../../core/unit.ts";
import type { Kept } from "../../flow/report/prove.ts";
import { exactly } from "./exactly.ts";
import { Checkpoint } from "./logs.ts";

/** An entry's bytes, and its path in the tree of the checkpoint, the leaf's sibling first. */
const Proven = z.strictObject({
  index: IntegerText,
  entry: z.base64().max((ENTRY_BYTES_MAX * 4) / 3 + 4),
  hashes: z.array(HashText).max(63),
});
/** Without the bytes where it is another entry than the one that was promised. */
const ProvenPromise = Proven.extend({ entry: Proven.shape.entry.exactOptional() });

export const KeptPromise = exactly<Kept>()(
  z.strictObject({
    checkpoint: Checkpoint,
    proofs: z.array(ProvenPromise),
    consistency: z.array(HashText).max(63).exactOptional(),
    keys: z.array(Proven),
  }),
);
