/** Where an audit reads from. A folder on disk is one; a browser will read over HTTP. */

/** One log's archive. Paths are C2SP tlog-tiles', as `tile/entries/000` or `checkpoint/17`. */
export interface Source {
  /** The whole file, undefined where there is none. Throws `CannotLook` when it cannot be read. */
  read(path: string): Promise<Uint8Array | undefined>;
  /** Paths of all files below a folder of the log, in no order; none where nothing can be listed. */
  list(folder: string): AsyncIterable<string>;
}
