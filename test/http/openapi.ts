/** OpenAPI 3.1.0 (spec.openapis.org) as far as our document uses it; whatever else is in one is refused. */
import { z } from "zod";
import type { Route } from "../../src/http/access.ts";
import { openapiDocument } from "../../src/http/openapi.ts";

interface Schema {
  $ref?: string;
  allOf?: Schema[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  items?: Schema;
  propertyNames?: Schema;
  additionalProperties?: Schema | false;
  [keyword: string]: unknown;
}

const Pattern = z.string().refine((text) => new RegExp(text, "u").source === text);
const Limit = z.number().nonnegative();
const Text = z.string().min(1);
const JsonType = z.enum(["string", "integer", "number", "boolean", "object", "array", "null"]);

/** A JSON Schema of draft 2020-12; beside a `$ref` stands only what older tools may overlook. */
const Schema: z.ZodType<Schema> = z.lazy(() =>
  z.union([
    z.strictObject({
      $ref: z.string().startsWith("#/components/schemas/"),
      default: z.unknown().optional(),
    }),
    z.strictObject({
      type: z.union([JsonType, z.array(JsonType).min(2)]).exactOptional(),
      description: Text.exactOptional(),
      default: z.unknown().optional(),
      const: z.union([z.string(), z.number(), z.boolean()]).exactOptional(),
      enum: z.array(z.string()).min(1).exactOptional(),
      format: Text.exactOptional(),
      pattern: Pattern.exactOptional(),
      contentEncoding: z.enum(["base64", "base64url"]).exactOptional(),
      minLength: Limit.exactOptional(),
      maxLength: Limit.exactOptional(),
      minimum: z.number().exactOptional(),
      maximum: z.number().exactOptional(),
      allOf: z.array(Schema).min(1).exactOptional(),
      anyOf: z.array(Schema).min(1).exactOptional(),
      properties: z.record(z.string(), Schema).exactOptional(),
      required: z.array(z.string()).exactOptional(),
      propertyNames: Schema.exactOptional(),
      additionalProperties: z.union([z.literal(false), Schema]).exactOptional(),
      items: Schema.exactOptional(),
      minItems: Limit.exactOptional(),
      maxItems: Limit.exactOptional(),
    }),
  ]),
);

const MediaType = z.enum([
  "application/json",
  "application/jose",
  "application/octet-stream",
  "application/problem+json",
  "application/vnd.apache.parquet",
  "application/x-ndjson",
  "text/html",
  "text/plain",
  "text/csv",
]);
const Content = z.partialRecord(MediaType, z.strictObject({ schema: Schema }));

const Parameter = z.strictObject({
  name: z.string().regex(/^[a-z_]+$/),
  in: z.enum(["path", "query"]),
  required: z.boolean(),
  schema: Schema,
});

const Operation = z.strictObject({
  summary: Text,
  description: Text,
  // The empty alternative: a token may be left out.
  security: z.array(z.strictObject({ bearer: z.tuple([z.string()]).exactOptional() })),
  parameters: z.array(Parameter).min(1).exactOptional(),
  requestBody: z.strictObject({ required: z.literal(true), content: Content }).exactOptional(),
  responses: z.record(
    z.string().regex(/^[2-5][0-9]{2}$/),
    z.strictObject({ description: Text, content: Content }),
  ),
});
type Operation = z.infer<typeof Operation>;

const OpenApi = z.strictObject({
  openapi: z.literal("3.1.0"),
  info: z.strictObject({ title: Text, version: Text, summary: Text }),
  paths: z.record(
    z.string().regex(/^(?:\/(?:[a-z0-9_.]+|\{[a-z]+\}))+$/),
    z.strictObject({
      get: Operation.exactOptional(),
      post: Operation.exactOptional(),
      put: Operation.exactOptional(),
      delete: Operation.exactOptional(),
    }),
  ),
  components: z.strictObject({
    securitySchemes: z.record(z.string(), z.unknown()),
    schemas: z.record(z.string().regex(/^[A-Za-z]+$/), Schema),
  }),
});

/** As it goes over the wire. */
export const document = OpenApi.parse(JSON.parse(JSON.stringify(openapiDocument("1"))));

/** @throws Error for a route that the document does not have */
export function operation(route: Route): Operation {
  const [method, path = ""] = route.split(" ");
  const item = document.paths[path.replaceAll(/:([a-z]+)/g, "{$1}")];
  const found = item?.[method?.toLowerCase() as "get" | "post" | "put" | "delete"];
  if (found === undefined) throw new Error(`the document has no ${route}`);
  return found;
}
