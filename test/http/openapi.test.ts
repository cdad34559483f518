import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { z } from "zod";
import { ROLES } from "../../src/core/control.ts";
import { PROBLEMS } from "../../src/core/problem.ts";
import { ACCESS, ROUTES, type Route } from "../../src/http/access.ts";
import { OPERATIONS } from "../../src/http/operations.ts";
import { answersOf, problemsOf } from "../../src/http/outcomes.ts";
import { document, operation } from "./openapi.ts";

test("the OpenAPI document has every route of the access table and no other", () => {
  const documented = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map(
      (method) => `${method.toUpperCase()} ${path.replaceAll(/\{([a-z]+)\}/g, ":$1")}`,
    ),
  );
  expect(documented.sort()).toEqual([...ROUTES].sort());
});

test("every reference of the document leads to a component, and every component is referred to", () => {
  const text = JSON.stringify(document);
  const references = [...text.matchAll(/"\$ref":"([^"]*)"/g)].map(([, reference]) => reference);
  const components = Object.keys(document.components.schemas);
  expect([...new Set(references)].sort()).toEqual(
    components.map((name) => `#/components/schemas/${name}`).sort(),
  );
});

test.each(ROUTES)("%s: its parameters are exactly those of its path and its query", (route) => {
  const parameters = operation(route).parameters ?? [];
  const inPath = parameters.filter((parameter) => parameter.in === "path");
  const named = [...route.matchAll(/:([a-z]+)/g)].map(([, name]) => name);
  expect(inPath.map(({ name, required }) => [name, required])).toEqual(
    named.map((name) => [name, true]),
  );
  expect(parameters.length > inPath.length).toBe(OPERATIONS[route].query !== undefined);
});

test.each(ROUTES)("%s: each of its roles alone opens it, and nothing else is asked", (route) => {
  const roles = ROLES.filter((role) => (ACCESS[route] as readonly string[]).includes(role));
  const { description, security } = operation(route);
  const asked = security.flatMap(({ bearer = [] }) => bearer);
  expect(asked.sort()).toEqual([...roles].sort());
  const none = security.filter(({ bearer }) => bearer === undefined);
  expect(none).toHaveLength(ACCESS[route].includes("public") ? 1 : 0);
  for (const audience of ACCESS[route]) expect(description).toContain(audience);
  expect(document.components.securitySchemes).toEqual({
    bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" },
  });
});

const WITH_BODY = ROUTES.filter((route) => OPERATIONS[route].body !== undefined);

/** The form is another's, who adds members with each of their versions. */
const FOREIGN: readonly Route[] = ["POST /webhooks/gitlab/:log"];

test.each(WITH_BODY)("%s: the body that it takes is closed to unknown members", (route) => {
  const { content = {} } = operation(route).requestBody ?? {};
  expect(Object.keys(content)).toEqual(Object.keys(OPERATIONS[route].body ?? {}));
  const { "application/json": json, "application/jose": jose } = content;
  if (json !== undefined) {
    const open = FOREIGN.includes(route) ? {} : false;
    expect(json.schema.additionalProperties).toEqual(open);
  }
  if (jose !== undefined) expect(jose.schema).toEqual({ $ref: "#/components/schemas/Jws" });
});

test("every code is one that some route gives, but for methods", () => {
  const given = new Set(ROUTES.flatMap((route) => [...problemsOf(route).values()].flat()));
  const missing = Object.keys(PROBLEMS).filter((code) => !given.has(code as never));
  expect(missing).toEqual(["method-not-allowed"]);
  const { properties } = document.components.schemas["Problem"] ?? {};
  expect(properties?.["code"]).toMatchObject({ enum: [...Object.keys(PROBLEMS), "internal"] });
});

test("a status is of success or of problems, and a problem's has its codes and no other's", () => {
  const codesOf = new Map<z.ZodType | undefined, readonly string[]>();
  for (const route of ROUTES) {
    for (const [status, codes] of problemsOf(route)) {
      expect(OPERATIONS[route].success).not.toHaveProperty(String(status));
      const shape = answersOf(route).get(status)?.["application/problem+json"];
      // Many routes share a shape: it is tried once.
      const tried = codesOf.get(shape);
      codesOf.set(shape, codes);
      if (tried !== undefined) {
        expect(codes).toEqual(tried);
        continue;
      }
      const valid = { type: "https://x.example/", title: "x", status };
      for (const code of [...Object.keys(PROBLEMS), "internal"]) {
        const documented = codes.some((known) => known === code);
        expect(shape?.safeParse({ ...valid, code }).success).toBe(documented);
      }
    }
  }
});

test("whatever rules and effects of an action refuse is in the contract of who proposes and who approves", () => {
  const folder = new URL("../../src/flow/control/", import.meta.url);
  const read = (path: string): string => readFileSync(new URL(path, folder), "utf8");
  const beside = ["rules.ts", "effects.ts"].flatMap((path) =>
    [...read(path).matchAll(/^import \{.*from "(\.[^"]*)";$/gm)].map(([, name]) => name ?? ""),
  );
  const judging = beside.filter((path) => !/\/store\/|\/problem\.ts$/.test(path));
  const files = new Set(["rules.ts", "../../core/adjustment.ts", ...judging]);
  const thrown = new Set(
    [...files].flatMap((path) =>
      [...read(path).matchAll(/new Problem\("([a-z-]+)"/g)].map(([, code]) => code ?? ""),
    ),
  );
  expect(thrown).toContain("month-not-ready");
  for (const route of ["POST /v1/proposals", "POST /v1/proposals/:log/:index/approval"] as const) {
    const listed: readonly string[] = [...problemsOf(route).values()].flat();
    expect([...thrown].filter((code) => !listed.includes(code))).toEqual([]);
  }
});
