/** The checkpoint that a closed month rests on: archived, and held outside where anybody is there to hold it. */
import { encodeBase64 } from "../../core/text.ts";
import { instantText } from "../../core/unit.ts";
import { listCheckpoints } from "../../store/checkpoints.ts";
import { type Anchor, type Anchoring, anchorOf } from "../log/anchor.ts";
import { genuineCheckpoint } from "../log/genuine.ts";

/** As `month_closed` has it. */
export interface Settled {
  size: string;
  root: string;
  anchor: "none" | "witnessed" | "locked";
  anchored_by: { at: string; name: string }[];
}

const SIZE_MAX = 2n ** 63n - 1n;
const MS_PER_SECOND = 1_000n;
const NAMES_MAX = 16;
/** In the place of a witness's name. */
const LOCK = "lock";

/**
 * Of at least so many entries; a string is what is waited for.
 *
 * @throws ArchiveError `archive-unavailable`; Problem `signer-unavailable`
 */
export async function settledAt(
  anchoring: Anchoring,
  log: string,
  size: bigint,
): Promise<Settled | string> {
  if (anchoring.policy !== undefined || anchoring.archive.lockMs > 0) {
    const anchor = await anchorOf(anchoring, log, size);
    return anchor === undefined ? "anchor: nobody outside holds a checkpoint yet" : held(anchor);
  }
  const { sql } = anchoring;
  const [first] = await listCheckpoints(sql, log, { after: size - 1n, upTo: SIZE_MAX, limit: 1 });
  const checkpoint =
    first === undefined ? undefined : await genuineCheckpoint(anchoring, sql, log, first);
  if (checkpoint === undefined) return "sealed: no checkpoint covers the cut-off yet";
  const root = encodeBase64(checkpoint.root);
  return { size: String(checkpoint.size), root, anchor: "none", anchored_by: [] };
}

function held(anchor: Anchor): Settled {
  const place = { size: String(anchor.size), root: encodeBase64(anchor.root) };
  if (anchor.kind === "locked") {
    const at = anchor.until.toISOString();
    return { ...place, anchor: "locked", anchored_by: [{ at, name: LOCK }] };
  }
  const by = anchor.by.slice(0, NAMES_MAX).map(({ name, time }) => {
    return { at: instantText(Number(time * MS_PER_SECOND)), name };
  });
  return { ...place, anchor: "witnessed", anchored_by: by };
}
