/** A log as those see it who check it: C2SP texts and bytes, and lists beside them. */
import { z } from "zod";
import { HashText, IntegerText } from "../../core/unit.ts";

/** A signed note: the log's signatures, then those of witnesses. */
export const Checkpoint = z
  .string()
  .regex(/^[^\n]+\n(?:0|[1-9][0-9]*)\n[^\n]+\n\n(?:— [^\n]+\n)+$/);

/** Up to 256 hashes of 32 bytes; or up to 256 entries, before each its length in two bytes. */
export const Tile = z.string();

export const Inclusion = z.string().regex(/^c2sp\.org\/tlog-proof@v1\n/);

export const Consistency = z.strictObject({
  from: IntegerText,
  to: IntegerText,
  hashes: z.array(HashText).max(63),
});

export const Checkpoints = z.strictObject({
  sizes: z.array(IntegerText),
  next: IntegerText.exactOptional(),
});
