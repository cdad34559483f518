import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openIntake } from "../../src/flow/intake.ts";
import { readText } from "../../src/http/body.ts";
import { repeatsMember } from "../../src/http/json.ts";

/** A request as far as its body goes. */
function request(headers: Record<string, string> = {}): PassThrough & IncomingMessage {
  return Object.assign(new PassThrough(), { headers }) as unknown as PassThrough & IncomingMessage;
}

test("bodies that are read at once fit into one room, whatever each has declared", async () => {
  const room = openIntake({ bytes: 100 });
  const slow = request({ "content-length": "90" });
  const reading = readText(slow, 90, room);
  slow.write("x".repeat(10));
  const other = request();
  other.end("y".repeat(90));
  expect(await readText(other, 90, room)).toHaveLength(90);

  slow.write("x".repeat(60));
  const third = request();
  third.end("z".repeat(90));
  await expect(readText(third, 90, room)).rejects.toMatchObject({ code: "busy" });
  slow.end("x".repeat(20));
  expect(await reading).toHaveLength(90);
  expect(() => room.enter(0, 100)).not.toThrow();
});

test("a body that is cut off gives its room back", async () => {
  const room = openIntake({ bytes: 100 });
  const gone = request();
  const reading = readText(gone, 90, room);
  gone.write("x".repeat(80));
  gone.destroy();
  await expect(reading).rejects.toMatchObject({ code: "invalid-request" });
  const long = request();
  const tooLong = readText(long, 50, room);
  long.end("x".repeat(60));
  await expect(tooLong).rejects.toMatchObject({ code: "too-large" });
  expect(() => room.enter(0, 100)).not.toThrow();
});

test("a client that was gone before its body was asked for is not waited for", async () => {
  const gone = request();
  gone.destroy();
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
      expect(repeatsMember(text)).toBe(twice);
    }),
    { numRuns: 2_000 },
  );
});

test("an escape does not hide a second member of the same name", () => {
  expect(repeatsMember('{"a":1,"\\u0061":2}')).toBe(true);
});
