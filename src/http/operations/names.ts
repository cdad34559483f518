/** What the platform's numbers are called. */
import { NewNames } from "../../flow/names/put.ts";
import { ErasedName, Named } from "../answers/names.ts";
import { json, type Operation } from "./operation.ts";

export const NAMES = {
  "PUT /v1/names/:log": {
    summary: "What namespaces, projects and runners are called: for showing, and on no log",
    body: json(NewNames),
    success: { 200: json(Named) },
    problems: [],
  },
  "DELETE /v1/names/:log/:kind/:id": {
    summary: "Erase a name, and every export that may have it",
    success: { 200: json(ErasedName) },
    problems: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;
