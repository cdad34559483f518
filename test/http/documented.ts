/** Answers held against the contract that the OpenAPI document is made from. */
import type { z } from "zod";
import { ROUTES, type Route } from "../../src/http/access.ts";
import { answersOf } from "../../src/http/outcomes.ts";
import type { Answered } from "./house.ts";

/** @param path with or without a query; undefined for what no route answers, HEAD among it */
export function routeOf(method: string, path: string): Route | undefined {
  const asked = `${method} ${path.split("?")[0]}`;
  return ROUTES.find((route) => {
    const pattern = route.replace(":path", ".+").replaceAll(/:[a-z]+/g, "[^/]+");
    return new RegExp(`^${pattern}$`).test(asked);
  });
}

/** Without its parameters. */
export function mediaTypeOf({ headers }: Answered): string {
  return (headers.get("content-type") ?? "").split(";")[0] ?? "";
}

/** One document, and not one in each line. */
export function isJson(mediaType: string): boolean {
  return /[/+]json$/.test(mediaType);
}

/** The body as its shape takes it: text is text. */
export function bodyOf(answered: Answered): unknown {
  return isJson(mediaTypeOf(answered)) ? JSON.parse(answered.text) : answered.text;
}

/** @throws Error for a status or media type that the route does not have, and for any other shape */
export function shapeOf(route: Route, answered: Answered): z.ZodType {
  const type = mediaTypeOf(answered);
  const shape = answersOf(route).get(answered.status)?.[type];
  if (shape === undefined)
    throw new Error(`${route}: ${answered.status} ${type} is not documented`);
  return shape;
}

/** @throws Error for an answer that is not, to the last member, as documented */
export function assertDocumented(method: string, path: string, answered: Answered): void {
  const route = routeOf(method, path);
  if (route === undefined) return;
  const { error } = shapeOf(route, answered).safeParse(bodyOf(answered));
  if (error === undefined) return;
  throw new Error(`${route} answered ${answered.status} ${answered.text}`, { cause: error });
}
