import { expect, test } from "vitest";
import { openProofRoom } from "../../../src/flow/report/proof-room.ts";

const busy = expect.objectContaining({ code: "busy" });

function asking(limits: Parameters<typeof openProofRoom>[0]) {
  const room = openProofRoom(limits);
  let receipts = 0;
  return (log: string, results: number, receipt = `receipt ${receipts++}`): (() => void) =>
    room.enter({ log, receipt, results });
}

test("one receipt is proven once at a time, however often it is sent", () => {
  const ask = asking({});
  const leave = ask("a", 1, "the one");
  expect(() => ask("a", 1, "the one")).toThrow(busy);
  ask("a", 1, "another");
  leave();
  ask("a", 1, "the one");
});

test("large receipts take no room of small ones", () => {
  const ask = asking({ results: 100, ofLog: 100, small: 5 });
  ask("a", 100);
  expect(() => ask("a", 6)).toThrow(busy);
  for (let i = 0; i < 20; i += 1) ask("a", 5);
  expect(() => ask("a", 1)).toThrow(busy);
});

test("whatever is asked of one log, another has its part; what has left gives all of it back", () => {
  const ask = asking({ results: 15, ofLog: 10, small: 0 });
  const leave = ask("a", 10);
  expect(() => ask("a", 1)).toThrow(busy);
  const other = ask("b", 5);
  expect(() => ask("b", 1)).toThrow(busy);
  leave();
  other();
  ask("b", 10);
  ask("a", 5);
});
