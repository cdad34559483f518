/**
 * The files that were read, each with how far: of the whole host, beside the spools of the logs. What
 * a spool holds was written before the place here moved on, so a place never runs ahead of a report.
 */
import { createHash } from "node:crypto";
import { readSync } from "node:fs";
import { z } from "zod";
import { Journal, type Journaled } from "./journal.ts";

/** No record fits into so few bytes, and its random id is among the first 64 of them. */
const HEAD_BYTES = 256;

const Place = z.int().min(0);

const Source = z.strictObject({
  id: z.int().min(1),
  name: z.string(),
  /** The file's first bytes tell it from another that took its name; an inode would be reused. */
  head: z.strictObject({ bytes: Place, sha256: z.string() }),
  /** End of the last line that was taken; a torn line may follow up to `size`. */
  offset: Place,
  size: Place,
  malformed: Place,
  /** Lines whose instance had no enrolment when they were read, and where the first one starts. */
  unrouted: z.strictObject({ count: Place, from: Place }),
  /** How many enrolments the state had then: later ones may want the unrouted lines. */
  enrolments: Place,
});
export type Source = Readonly<z.infer<typeof Source>>;

/** Each record has whole sources as they now are. */
const Sources = z.strictObject({ sources: z.array(Source) });
type Sources = z.infer<typeof Sources>;

export class SourceRegister {
  readonly #state = new KnownSources();
  readonly #journal: Journal<Sources>;

  constructor(folder: string, segmentBytes?: number) {
    const options = { folder, schema: Sources, state: this.#state };
    this.#journal = new Journal(
      segmentBytes === undefined ? options : { ...options, segmentBytes },
    );
    // The last one begins with all that the others say.
    for (const segment of this.#journal.segments().slice(0, -1)) this.#journal.remove(segment);
  }

  /** In order of first reading. */
  all(): Source[] {
    return [...this.#state.known.values()];
  }

  /**
   * The source that an open file is, new ones at offset 0. A file that is shorter than what was read
   * of it, or begins otherwise, is another file: read again, its reports are duplicates at worst.
   */
  identify(fd: number, name: string, size: number): { source: Source; replaced: boolean } {
    const namesakes = this.all().filter((source) => source.name === name);
    const same = namesakes.findLast(({ head }) => sameHead(fd, size, head));
    if (same !== undefined && size >= same.offset) return { source: same, replaced: false };
    const source: Source = {
      id: this.#state.known.size + 1,
      name,
      head: readHead(fd, Math.min(size, HEAD_BYTES)),
      offset: 0,
      size: 0,
      malformed: 0,
      unrouted: { count: 0, from: 0 },
      enrolments: 0,
    };
    this.update(source);
    return { source, replaced: namesakes.length > 0 };
  }

  /** Durable on return. */
  update(source: Source): void {
    this.#journal.append({ sources: [source] });
  }

  close(): void {
    this.#journal.close();
  }
}

/** Lines of a source that could not be read, a torn one at its end included. */
export function malformedIn({ malformed, offset, size }: Source): number {
  return malformed + (size > offset ? 1 : 0);
}

class KnownSources implements Journaled<Sources> {
  readonly known = new Map<number, Source>();

  snapshot(): Sources {
    return { sources: [...this.known.values()] };
  }

  apply({ sources }: Sources): void {
    for (const source of sources) this.known.set(source.id, source);
  }
}

function sameHead(fd: number, size: number, head: Source["head"]): boolean {
  return size >= head.bytes && readHead(fd, head.bytes).sha256 === head.sha256;
}

function readHead(fd: number, bytes: number): Source["head"] {
  const head = new Uint8Array(bytes);
  const read = readSync(fd, head, 0, bytes, 0);
  return { bytes: read, sha256: createHash("sha256").update(head.subarray(0, read)).digest("hex") };
}
