/** In one piece that doubles: a list of chunks of a byte each would take two hundred times what it holds. */
export class Gathered {
  length = 0;
  #piece: Buffer = Buffer.alloc(0);

  add(chunk: Buffer): void {
    const length = this.length + chunk.length;
    // All there is of most bodies, and never copied.
    if (this.length === 0) this.#piece = chunk;
    else {
      if (length > this.#piece.length) this.#grow(2 * length);
      chunk.copy(this.#piece, this.length);
    }
    this.length = length;
  }

  bytes(): Buffer {
    return this.#piece.subarray(0, this.length);
  }

  #grow(length: number): void {
    const larger = Buffer.allocUnsafe(length);
    this.#piece.copy(larger, 0, 0, this.length);
    this.#piece = larger;
  }
}
