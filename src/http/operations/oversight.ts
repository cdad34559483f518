/** Who has access, what they did with it, and its end. */
import { NewBar } from "../../flow/access/principals.ts";
import { NewReview } from "../../flow/access/review.ts";
import { AccessPage, Barred, PrincipalPage, ReviewReceipt } from "../answers/oversight.ts";
import { json, type Operation, WRITING, written } from "./operation.ts";
import { AccessSearch, PrincipalSearch } from "./shapes.ts";

export const OVERSIGHT = {
  "GET /v1/access/:log": {
    summary: "Who read or changed what of a log on a day",
    query: AccessSearch,
    success: { 200: json(AccessPage) },
    problems: [],
  },
  "GET /v1/principals": {
    summary: "Who has used a log, as what and when",
    query: PrincipalSearch,
    success: { 200: json(PrincipalPage) },
    problems: [],
  },
  "POST /v1/principals/:id/bar": {
    summary: "End somebody's access, to one log or to all",
    body: json(NewBar),
    success: written(Barred),
    problems: [],
  },
  "POST /v1/principals/:id/unbar": {
    summary: "Take back just such an end of somebody's access",
    body: json(NewBar),
    success: written(Barred),
    problems: ["already-decided"],
  },
  "POST /v1/logs/:log/access_reviews": {
    summary: "Say of everybody who had access whether they keep it",
    body: json(NewReview),
    success: { 201: json(ReviewReceipt) },
    problems: ["review-incomplete", "too-many", ...WRITING],
  },
} as const satisfies Readonly<Record<string, Operation>>;
