/** What the configuration says about how often anybody may ask. */
import { z } from "zod";
import { wholeNumber } from "./config-value.ts";

const REQUESTS_MAX = 10_000_000;

/** To be spread into the shape of the whole environment. Requests in one window. */
export const AccessEnvironment = {
  RATE_LIMIT_PER_CALLER: wholeNumber(1, REQUESTS_MAX).default(2_000),
  RATE_LIMIT_PER_MACHINE: wholeNumber(1, REQUESTS_MAX).default(100_000),
};

const WINDOW_SECONDS = 10;

const Values = z.object(AccessEnvironment);

/** In one window of time. */
export interface RateConfig {
  /** Requests of one principal. */
  caller: number;
  /** Of one runner's key, and of a platform's decisions; a request may hold hundreds of reports or jobs. */
  machine: number;
  seconds: number;
}

export function ratesOf(values: z.infer<typeof Values>): RateConfig {
  return {
    caller: values.RATE_LIMIT_PER_CALLER,
    machine: values.RATE_LIMIT_PER_MACHINE,
    seconds: WINDOW_SECONDS,
  };
}
