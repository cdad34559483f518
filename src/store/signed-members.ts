/**
 * What agents signed, as the database reads it from an entry's bytes: while a log's head is locked nobody writes to
 * it, and decoding thousands of entries here would take seconds.
 */
import type { Sql, Transaction } from "./connect.ts";

/**
 * Text after a member's name, up to its end. In canonical JSON no space is between the two, and in no string of it
 * a quote that is not escaped. PostgreSQL's own reader of JSON takes three times as long.
 */
export const after = (sql: Sql | Transaction, text: "entry" | "signed", name: string) =>
  sql`split_part(split_part(${sql(text)}, ${name}, 2), '"', 1)`;

/**
 * Beside the row `e` with an entry's bytes: its text, `entry`, and the payload of its JWS (RFC 7515 §7.1), `signed`.
 * OFFSET 0: each is read once.
 */
export const joinSigned = (sql: Sql | Transaction) => sql`
  cross join lateral (
    select encode(e.bytes, 'escape') as entry offset 0
  ) as escaped
  cross join lateral (
    select replace(replace(split_part(${after(sql, "entry", '"jws":"')}, '.', 2), '-', '+'), '_', '/')
      as payload
    offset 0
  ) as encoded
  cross join lateral (
    select
      encode(decode(payload || repeat('=', -octet_length(payload) & 3), 'base64'), 'escape') as signed
    offset 0
  ) as decoded`;
