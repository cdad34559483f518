/**
 * Halves of controls that no other test takes out: for each the place that is taken out, and the test that fails
 * then. `npm run controls` runs them, each in a copy; test/controls/matrix.test.ts holds them to what stands.
 */
import { ACCESS } from "./access-removals.ts";
import { INPUT } from "./input-removals.ts";
import { MONTHS } from "./months-removals.ts";
import { OPERATION } from "./operation-removals.ts";
import type { Removal } from "./removal.ts";

/** In the order of docs/controls.md. */
export const REMOVALS: readonly Removal[] = [...ACCESS, ...OPERATION, ...INPUT, ...MONTHS];
