import fc from "fast-check";
import { expect, test } from "vitest";
import {
  BODY_BYTES_MAX,
  type Body,
  decodeEntry,
  ENTRY_BYTES_MAX,
  type Entry,
  encodeEntry,
} from "../../src/core/entry.ts";
import { leafHash } from "../../src/core/hash.ts";
import { canonical } from "../../src/core/json.ts";
import { encodeUtf8, equal, utf8Length } from "../../src/core/text.ts";
import { CARD, enrolmentBody, kidOf, LOG, NOW, tokenSha256 } from "./history.ts";

const conflict: Entry = {
  at: NOW,
  body: { jws: "a.b.c", stands: "3" },
  index: 4n,
  kind: "conflict",
  log: LOG,
  prev: new Uint8Array(32).fill(7),
};

const text = (entry: Entry): string => new TextDecoder().decode(encodeEntry(entry));
const decodeText = (json: string): ReturnType<typeof decodeEntry> => decodeEntry(encodeUtf8(json));

test("an entry is read back from its bytes as it was written", () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
      fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }),
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      (index, jws, prev) => {
        const entry: Entry = { ...conflict, index, prev, body: { jws, stands: "0" } };
        expect(decodeEntry(encodeEntry(entry))).toEqual(entry);
      },
    ),
  );
});

test("L06: a member that is absent, empty or null gives three different answers", () => {
  const usage = {
    billable: true,
    billing_month: "2026-11-01",
    card: "1",
    class: "standard",
    compute_ms: "60000.000000",
    enrolment: "2",
    factor: "1/1",
    jws: "a.b.c",
    limit: "",
    machine_type: "small",
    not_billable: "" as const,
    tracking: "hosted" as const,
    usage_month: "2026-11-01",
  };
  const entry: Entry = { ...conflict, kind: "usage", body: usage };
  expect(decodeEntry(encodeEntry(entry))).toEqual(entry);
  expect(decodeText(text(entry).replace('"jws"', '"hold":"",$&'))).toBe("malformed");
  expect(decodeText(text(entry).replace('"jws"', '"hold":null,$&'))).toBe("malformed");
  expect(decodeText(text(entry).replace('"jws"', '"hold":"3",$&'))).not.toBe("malformed");
});

test("L09, L10: another value of any member, or a letter moved over a border, is another leaf", () => {
  const changed: Entry[] = [
    { ...conflict, at: "2026-11-20T12:00:00.001Z" },
    { ...conflict, index: 5n },
    { ...conflict, log: LOG.replace("0", "1") },
    { ...conflict, prev: new Uint8Array(32).fill(8) },
    { ...conflict, body: { jws: "a.b.d", stands: "3" } },
    { ...conflict, body: { jws: "a.b.c3", stands: "" } },
    { ...conflict, kind: "hold", body: { jws: "a.b.c", code: "future" } },
  ];
  const leaves = [conflict, ...changed].map((entry) => leafHash(encodeEntry(entry)));
  leaves.forEach((leaf, i) => {
    expect(leaves.findIndex((other) => equal(leaf, other))).toBe(i);
  });
});

test.each([
  [
    "another order of members",
    (json: string) => json.replace(/^\{("at":"[^"]+"),(.*)\}$/, "{$2,$1}"),
  ],
  ["a space", (json: string) => json.replace(":", ": ")],
  ["a member twice", (json: string) => json.replace("{", `{"at":"${NOW}",`)],
  ["an unknown member", (json: string) => json.replace('"v"', '"u":"",$&')],
  ["an unknown member of its body", (json: string) => json.replace('"jws"', '"a":"",$&')],
  ["a missing body", (json: string) => json.replace(/"body":\{[^}]*\},/, "")],
  ["a body of another kind", (json: string) => json.replace("conflict", "attestation")],
  ["a number", (json: string) => json.replace('"index":"4"', '"index":4')],
  ["an index with a leading zero", (json: string) => json.replace('"4"', '"04"')],
  ["another version", (json: string) => json.replace('"v":"1"', '"v":"2"')],
  ["a byte order mark", (json: string) => `\ufeff${json}`],
  ["an end cut off", (json: string) => json.slice(0, -1)],
  ["nothing in it", () => ""],
])("bytes with %s are malformed", (_, change) => {
  const json = text(conflict);
  expect(change(json)).not.toBe(json);
  expect(decodeText(change(json))).toBe("malformed");
});

test("an entry of a kind that is not known yet is told from a malformed one", () => {
  for (const kind of ["dividend", "constructor", "__proto__"]) {
    expect(decodeText(text(conflict).replace("conflict", kind))).toBe("unknown-kind");
  }
});

test("no byte string makes the reader throw", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      expect(decodeEntry(bytes)).toBe("malformed");
    }),
  );
});

test("an entry past 65,535 bytes is neither written nor read", () => {
  const jws = "x".repeat(ENTRY_BYTES_MAX);
  expect(() => encodeEntry({ ...conflict, body: { jws, stands: "3" } })).toThrow();
  expect(decodeEntry(new Uint8Array(ENTRY_BYTES_MAX + 1))).toBe("malformed");
});

test("a body within its bound fits into an entry of any kind, at any index", () => {
  const jws = "x".repeat(BODY_BYTES_MAX - utf8Length(canonical({ closing: "" })));
  const body = { closing: jws } as unknown as Body<"month_closing_withdrawn">;
  expect(utf8Length(canonical(body))).toBe(BODY_BYTES_MAX);
  const entry: Entry = {
    ...conflict,
    kind: "month_closing_withdrawn",
    body,
    index: 2n ** 63n - 1n,
  };
  expect(encodeEntry(entry).length).toBeLessThanOrEqual(ENTRY_BYTES_MAX);
});

test("the fullest enrolment and disposition of everyday texts stay within an entry", () => {
  const uuids = Array.from(
    { length: 128 },
    (_, i) => `${String(i).padStart(8, "0")}-8f6d-4b6b-9d5b-0a1b2c3d4e5f`,
  );
  const namespaces = Array.from({ length: 256 }, (_, i) => String(9_000_000_000 + i));
  const enrolment: Entry = {
    ...conflict,
    kind: "enrolment",
    body: enrolmentBody(
      1,
      uuids.map((uuid) => ({ uuid, runner_type: "group" })),
      namespaces,
    ),
  };
  const lines = Array.from({ length: 256 }, (_, i) => ({
    code: "outside-enrolment-or-longer-than-any-code",
    counter: String(2n ** 62n + BigInt(i)),
    digest: tokenSha256(i),
    index: String(2n ** 62n),
  }));
  const disposition: Entry = {
    ...conflict,
    kind: "disposition",
    body: {
      kid: kidOf(1),
      lines: lines.map((line) => ({ ...line, code: line.code.slice(0, 40) })),
      salt: CARD.salt,
    },
  };
  for (const entry of [enrolment, disposition]) {
    expect(decodeEntry(encodeEntry(entry))).toEqual(entry);
  }
});
