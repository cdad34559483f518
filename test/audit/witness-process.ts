/**
 * A witness's answer to the request on its standard input: `witness-process.ts FOLDER EFFECT`. It is
 * killed, as by `kill -9`, as soon as the effect is there; `none` lets it live.
 */
import { readFileSync } from "node:fs";
import { addCheckpoint } from "../../audit/witness/answer.ts";
import { witnessing } from "./witnessing.ts";

const [folder = "", last = ""] = process.argv.slice(2);
const onEffect = (effect: string): void => {
  if (effect === last) process.kill(process.pid, "SIGKILL");
};
const body = new Uint8Array(readFileSync(0));
const { body: text, status } = addCheckpoint(body, witnessing(folder, { onEffect }));
process.stdout.write(JSON.stringify({ status, text }));
