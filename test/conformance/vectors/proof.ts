/** RFC 9162 proofs, and C2SP tlog-proof. */
import { leafHash, sha256 } from "../../../src/core/hash.ts";
import {
  type Consistency,
  consistencyProof,
  inclusionProof,
  leafNodes,
  verifyConsistency,
  verifyInclusion,
} from "../../../src/core/proof.ts";
import { decodeBase64, decodeHex, encodeBase64, encodeUtf8 } from "../../../src/core/text.ts";
import { formatTlogProof, parseTlogProof, type TlogProof } from "../../../src/core/tlog-proof.ts";
import { readJson, type Vector, vector } from "../vector.ts";

/** Numbers beyond 2^53 are strings. */
type Integer = number | string;

interface Probe {
  file: string;
  proof: string[] | null;
  wantErr: boolean;
}

interface InclusionProbe extends Probe {
  leafIdx: Integer;
  treeSize: Integer;
  leafHash: string;
  root: string;
}

interface ConsistencyProbe extends Probe {
  size1: Integer;
  size2: Integer;
  root1: string;
  root2: string;
}

interface TlogProofs {
  marshal: {
    index: number;
    extra_utf8?: string;
    hash_preimages_utf8: string[];
    checkpoint: string;
    want?: string;
  }[];
  unmarshal_errors: { desc: string; text: string }[];
}

/** Valid upstream, where a root may be of any length: here it must have 32 bytes. */
const SHORT_ROOTS = "consistency/additional/sizes-are-equal-one-and-proof-is-empty.json";

export function* proofVectors(folder: string): Generator<Vector> {
  const leaves = readJson<{ leaf_inputs_hex: string[] }>(
    folder,
    "merkle/rfc6962_reference_tree.json",
  ).leaf_inputs_hex.map((hex) => leafHash(bytes(decodeHex(hex))));
  const read = leafNodes(leaves);
  const inclusion = readJson<{ vectors: InclusionProbe[] }>(folder, "merkle/inclusion.json");
  for (const { file, proof, wantErr, ...probe } of inclusion.vectors) {
    const [index, size] = [BigInt(probe.leafIdx), BigInt(probe.treeSize)];
    const [leaf, root] = [base64(probe.leafHash), base64(probe.root)];
    const claim = { leaf, index, size, proof: (proof ?? []).map(base64), root };
    yield vector(file, verifyInclusion(claim) !== wantErr);
    if (wantErr) continue;
    const made = inclusionProof(index, size, read).map(encodeBase64);
    yield vector(`${file}, made by us`, String(made) === String(proof ?? []));
  }
  const consistency = readJson<{ vectors: ConsistencyProbe[] }>(folder, "merkle/consistency.json");
  for (const { file, proof, wantErr, ...probe } of consistency.vectors) {
    const [from, to] = [BigInt(probe.size1), BigInt(probe.size2)];
    const [fromRoot, toRoot] = [base64(probe.root1), base64(probe.root2)];
    const claim: Consistency = { from, to, proof: (proof ?? []).map(base64), fromRoot, toRoot };
    const refused = wantErr || file === SHORT_ROOTS;
    yield vector(file, verifyConsistency(claim) !== refused);
    if (refused) continue;
    const made = consistencyProof(from, to, read).map(encodeBase64);
    yield vector(`${file}, made by us`, String(made) === String(proof ?? []));
  }
  yield* tlogProofs(readJson<TlogProofs>(folder, "tlog-proof/tlog_proof.json"));
}

function* tlogProofs({ marshal, unmarshal_errors }: TlogProofs): Generator<Vector> {
  for (const { index, extra_utf8: extra, hash_preimages_utf8, checkpoint, want } of marshal) {
    const hashes = hash_preimages_utf8.map((text) => sha256(encodeUtf8(text)));
    const proof: TlogProof = { index: BigInt(index), hashes, checkpoint };
    if (extra !== undefined) proof.extra = encodeUtf8(extra);
    const lines = [
      "c2sp.org/tlog-proof@v1",
      ...(proof.extra === undefined ? [] : [`extra ${encodeBase64(proof.extra)}`]),
      `index ${index}`,
      ...hashes.map(encodeBase64),
      "",
    ];
    const text = formatTlogProof(proof);
    const expected = want ?? `${lines.join("\n")}\n${checkpoint}`;
    yield vector(`tlog-proof of entry ${index}`, text === expected, text);
    const read = parseTlogProof(text);
    const again = read === undefined ? "" : formatTlogProof(read);
    yield vector(`tlog-proof of entry ${index} is read back`, again === expected, again);
  }
  for (const { desc, text } of unmarshal_errors) {
    yield vector(`tlog-proof refused: ${desc}`, parseTlogProof(text) === undefined);
  }
}

function base64(text: string): Uint8Array {
  return bytes(decodeBase64(text));
}

/** Nothing, where a vector's own encoding does not hold: no hash then. */
function bytes(decoded: Uint8Array | undefined): Uint8Array {
  return decoded ?? new Uint8Array();
}
