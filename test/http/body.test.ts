import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readText, type Unread } from "../../src/http/body.ts";
import { hidesMember } from "../../src/http/json.ts";
import { openRoom } from "../../src/http/room.ts";

/** A request as far as its body goes. */
function request(
  room = openRoom(),
  headers: Record<string, string> = {},
): Unread & { incoming: PassThrough } {
  const incoming = Object.assign(new PassThrough(), { headers }) as unknown as PassThrough &
    IncomingMessage;
  return { incoming, room };
}

test("bodies that are read at once fit into one room, whatever each has declared", async () => {
  const room = openRoom({ bytes: 100 });
  const slow = request(room, { "content-length": "90" });
  const reading = readText(slow, 90);
  slow.incoming.write("x".repeat(10));
  const other = request(room);
  other.incoming.end("y".repeat(90));
  expect(await readText(other, 90)).toHaveLength(90);

  slow.incoming.write("x".repeat(60));
  const third = request(room);
  third.incoming.end("z".repeat(90));
  await expect(readText(third, 90)).rejects.toMatchObject({ code: "busy" });
  slow.incoming.end("x".repeat(20));
  expect(await reading).toHaveLength(90);
  expect(() => room.take(100, 100)).not.toThrow();
});

test("where large bodies have filled their part of the room, small ones are still let in", async () => {
  const room = openRoom({ bytes: 100, grown: 70, small: 20 });
  const large = request(room);
  const reading = readText(large, 90);
  large.incoming.write("x".repeat(70));
  const second = request(room);
  second.incoming.end("y".repeat(21));
  await expect(readText(second, 90)).rejects.toMatchObject({ code: "busy" });
  const small = request(room);
  small.incoming.end("z".repeat(20));
  expect(await readText(small, 90)).toHaveLength(20);
  large.incoming.write("x");
  await expect(reading).rejects.toMatchObject({ code: "busy" });
});

test("a body that is cut off gives its room back", async () => {
  const room = openRoom({ bytes: 100 });
  const gone = request(room);
  const reading = readText(gone, 90);
  gone.incoming.write("x".repeat(80));
  gone.incoming.destroy();
  await expect(reading).rejects.toMatchObject({ code: "invalid-request" });
  const long = request(room);
  const tooLong = readText(long, 50);
  long.incoming.end("x".repeat(60));
  await expect(tooLong).rejects.toMatchObject({ code: "too-large" });
  expect(() => room.take(100, 100)).not.toThrow();
});

test("a body that takes too long from its first byte gives its room back, and is told so", async () => {
  const room = openRoom({ bytes: 100, ms: 20 });
  const slow = request(room);
  const reading = readText(slow, 90);
  slow.incoming.write("x".repeat(80));
  await expect(reading).rejects.toMatchObject({ code: "body-too-slow", status: 408 });
  expect(() => room.take(100, 100)).not.toThrow();
});

test("a client that was gone before its body was asked for is not waited for", async () => {
  const gone = request();
  gone.incoming.destroy();
  await expect(readText(gone, 90)).rejects.toMatchObject({ code: "invalid-request" });
});

/** JSON text of random members, and whether an object in it names one twice. */
const nested = fc.letrec<{ value: [text: string, twice: boolean] }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.json({ maxDepth: 0 }).map((text): [string, boolean] => [text, false]),
    fc
      .array(tie("value"), { maxLength: 3 })
      .map((items): [string, boolean] => [
        `[${items.map(([text]) => text).join(" , ")}]`,
        items.some(([, twice]) => twice),
      ]),
    fc
      .array(fc.tuple(fc.constantFrom("a", "b", '"', "\\", "{", ":", "ä"), tie("value")), {
        maxLength: 4,
      })
      .map((members): [string, boolean] => [
        `{${members.map(([name, [text]]) => `${JSON.stringify(name)} : ${text}`).join(",")}}`,
        new Set(members.map(([name]) => name)).size < members.length ||
          members.some(([, [, twice]]) => twice),
      ]),
  ),
})).value;

test("a member that is named twice is found at any depth, and nothing else is taken for one", () => {
  fc.assert(
    fc.property(nested, ([text, twice]) => {
      JSON.parse(text);
      expect(hidesMember(text)).toBe(twice);
    }),
    { numRuns: 2_000 },
  );
});

test("an escape does not hide a second member of the same name", () => {
  expect(hidesMember('{"a":1,"\\u0061":2}')).toBe(true);
});

test("a member named __proto__ is found at any depth, in escapes too, and no value is taken for one", () => {
  for (const text of ['{"__proto__":1}', '[{"a":{"__proto__":{}}}]', '{"\\u005f_proto__":1}']) {
    expect(hidesMember(text)).toBe(true);
  }
  expect(hidesMember('{"a":"__proto__","b":["__proto__"]}')).toBe(false);
});
