import type { Cut } from "./cut.ts";

/** A control that is taken out, and the test that fails then; a row of the matrix may have several. */
export interface Removal extends Cut {
  /** Of docs/controls.md. */
  control: string;
  what: string;
  /** A file, and a part of the title of its test. */
  test: string;
  title: string;
}
