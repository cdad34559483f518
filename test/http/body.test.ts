import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readText, type Unread } from "../../src/http/body.ts";
import { membersKept, membersNamed } from "../../src/http/json.ts";
import { openRoom, type Room } from "../../src/http/room.ts";

/** A request as far as its body goes. */
function request(
  room = openRoom(),
  headers: Record<string, string> = {},
  remoteAddress = "192.0.2.1",
): Unread & { incoming: PassThrough } {
  const parts = { headers, socket: { remoteAddress } };
  const incoming = Object.assign(new PassThrough(), parts) as unknown as PassThrough &
    IncomingMessage;
  return { incoming, room };
}

/** All of its hundred bytes can be taken. */
function assertEmpty(room: Room): void {
  const place = room.enter("192.0.2.9", () => undefined);
  expect(() => place.take(100)).not.toThrow();
  place.leave();
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
  assertEmpty(room);
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

/** A body of which so much has come, and whether it had to make room. */
function standing(room: Room, bytes: number, peer = "192.0.2.1") {
  const body = { displaced: false };
  const place = room.enter(peer, () => {
    body.displaced = true;
  });
  place.take(bytes);
  return Object.assign(body, place);
}

const busy = expect.objectContaining({ code: "busy" });

test("in a full room the body makes way that has kept the most for the longest, and no other", () => {
  let now = 0;
  const room = openRoom({ bytes: 100, grown: 100, cost: 1_000 }, () => now);
  const slow = standing(room, 40);
  const small = standing(room, 10);
  now = 20;
  const quick = standing(room, 50);
  expect(() => standing(room, 10)).toThrow(busy);
  now = 30; // 1,200 byte-milliseconds of one, 300 of another, 500 of the third
  const next = standing(room, 40);
  expect([slow, small, quick, next].map(({ displaced }) => displaced)).toEqual([
    true,
    false,
    false,
    false,
  ]);
  expect(() => standing(room, 1)).toThrow(busy);
  for (const body of [slow, small, quick, next]) body.leave();
  assertEmpty(room);
});

test("one address that has filled more than half of the room makes way for another, however fast it is", () => {
  const room = openRoom({ bytes: 100, grown: 100 }, () => 0);
  const many = [40, 40, 20].map((bytes) => standing(room, bytes));
  expect(() => standing(room, 10)).toThrow(busy);
  standing(room, 10, "192.0.2.2");
  expect(many.filter(({ displaced }) => displaced)).toHaveLength(1);
});

test("a body that had to make room is answered busy", async () => {
  const room = openRoom({ bytes: 100, grown: 100 });
  const first = request(room);
  const reading = readText(first, 90);
  first.incoming.write("x".repeat(90));
  const other = request(room, {}, "192.0.2.2");
  other.incoming.end("y".repeat(90));
  expect(await readText(other, 90)).toHaveLength(90);
  await expect(reading).rejects.toMatchObject({ code: "busy" });
  assertEmpty(room);
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
  assertEmpty(room);
});

test("a body that takes too long from its first byte gives its room back, and is told so", async () => {
  const room = openRoom({ bytes: 100, ms: 20 });
  const slow = request(room);
  const reading = readText(slow, 90);
  slow.incoming.write("x".repeat(80));
  await expect(reading).rejects.toMatchObject({ code: "body-too-slow", status: 408 });
  assertEmpty(room);
});

test("a client that was gone before its body was asked for is not waited for", async () => {
  const gone = request();
  gone.incoming.destroy();
  await expect(readText(gone, 90)).rejects.toMatchObject({ code: "invalid-request" });
});

/** Whether JSON.parse, or a shape, would hide a member of the text. */
function hidesMember(text: string): boolean {
  return membersNamed(text, text.length * 2) !== membersKept(JSON.parse(text));
}

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
