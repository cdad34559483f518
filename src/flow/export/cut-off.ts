/** The month that a file is of. */
import { told } from "../../core/misfit.ts";
import { Problem } from "../../core/problem.ts";
import { type CutOff, cutOffAt } from "../month/cut-off.ts";
import type { Origin } from "./source.ts";

/** @throws Problem `invalid-request` where none is named */
export async function cutOffOf({ tx, log, asOf, parameters }: Origin): Promise<CutOff> {
  const { month } = parameters;
  if (month === undefined) throw new Problem("invalid-request", told({ missing: ["month"] }));
  return await cutOffAt(tx, log, { month, asOf });
}
