/** A file on disk, in the form that its manifest names. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Column, Format, Row } from "../../../src/core/export/tables.ts";
import { CannotLook } from "../../finding.ts";
import type { ExportFile } from "../export-file.ts";
import { readCsv } from "./csv.ts";
import { readNdjson } from "./ndjson.ts";
import { readParquet } from "./parquet.ts";

type Read = (path: string, columns: readonly Column[]) => AsyncGenerator<Row>;

const READ: Readonly<Record<Format, Read>> = {
  csv: readCsv,
  ndjson: readNdjson,
  parquet: readParquet,
};

export function fileAt(path: string): ExportFile {
  return {
    name: path,
    digest: async () => await digestOf(path),
    rows: (format, columns) => READ[format](path, columns),
  };
}

async function digestOf(path: string): Promise<{ bytes: bigint; sha256: string }> {
  const hash = createHash("sha256");
  let bytes = 0n;
  try {
    for await (const chunk of createReadStream(path)) {
      hash.update(chunk);
      bytes += BigInt(chunk.length);
    }
  } catch (error) {
    throw new CannotLook(`${path} cannot be read`, { cause: error });
  }
  return { bytes, sha256: hash.digest("base64") };
}
