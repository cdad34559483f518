/** OpenAPI 3.1 from the access table and the shapes of what is asked and answered. */
import { STATUS_CODES } from "node:http";
import { z } from "zod";
import { PROBLEMS } from "../core/problem.ts";
import { IntegerText, Kid, LogId, MonthText } from "../core/unit.ts";
import { NamedId } from "../flow/names/put.ts";
import { ACCESS, ROUTES, type Route } from "./access.ts";
import type { AnyCode } from "./answers/problem.ts";
import type { Document } from "./answers/process.ts";
import { answerSchema, componentSchemas, requestSchema } from "./components.ts";
import type { Content } from "./operations/operation.ts";
import { ExportId } from "./operations/shapes.ts";
import { OPERATIONS } from "./operations.ts";
import { answersOf, problemsOf, rolesOf } from "./outcomes.ts";

export function openapiDocument(version: string): z.infer<typeof Document> {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of ROUTES) {
    const [method = "", path = ""] = route.split(" ");
    const template = path.replaceAll(/:([a-z]+)/g, "{$1}");
    paths[template] = { ...paths[template], [method.toLowerCase()]: operationObject(route, path) };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Minutebook", version, summary: "The system of record for CI compute usage" },
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
      schemas: componentSchemas(),
    },
  };
}

function operationObject(route: Route, path: string): object {
  const { summary, query, body } = OPERATIONS[route];
  const parameters = [...pathParameters(path), ...queryParameters(query)];
  return {
    summary,
    description: `For: ${ACCESS[route].join(", ")}.`,
    // Each role by itself is enough: these are alternatives, and their list is empty where none is asked.
    security: [
      ...rolesOf(route).map((role) => ({ bearer: [role] })),
      ...(ACCESS[route].includes("public") ? [{}] : []),
    ],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: contentObject(body, requestSchema) } }),
    responses: responsesObject(route),
  };
}

function responsesObject(route: Route): object {
  const problems = problemsOf(route);
  const responses = Array.from(answersOf(route), ([status, content]) => {
    const codes = problems.get(status)?.map(titled).join("\n");
    const description = codes ?? STATUS_CODES[status] ?? "";
    return [status, { description, content: contentObject(content, answerSchema) }];
  });
  return Object.fromEntries(responses);
}

function contentObject(content: Content, schemaOf: (shape: z.ZodType) => object): object {
  const types = Object.entries(content);
  return Object.fromEntries(types.map(([type, shape]) => [type, { schema: schemaOf(shape) }]));
}

function titled(code: AnyCode): string {
  return code === "internal" ? "- `internal`" : `- \`${code}\`: ${PROBLEMS[code][1]}`;
}

const PATH_SHAPES: Readonly<Record<string, z.ZodType>> = {
  log: LogId,
  export: ExportId,
  id: IntegerText,
  index: IntegerText,
  kid: Kid,
  kind: NamedId.shape.kind,
  month: MonthText,
  namespace: IntegerText,
  size: IntegerText,
  path: z.string().regex(/^(?:[0-9]{1,2}|entries)\/(?:x[0-9]{3}\/)*[0-9]{3}(?:\.p\/[0-9]{1,3})?$/),
};

function pathParameters(path: string): object[] {
  return [...path.matchAll(/:([a-z]+)/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: requestSchema(PATH_SHAPES[name] ?? z.never()),
  }));
}

function queryParameters(query: z.ZodType | undefined): object[] {
  if (query === undefined) return [];
  const { properties = {}, required = [] } = requestSchema(query);
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}
