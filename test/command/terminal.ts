/** The program as a terminal sees it: what it writes, and the status that it ends with. */
import { vi } from "vitest";
import { run } from "../../src/command/program.ts";

export interface Finished {
  status: number;
  stdout: string;
  stderr: string;
}

/** Runs one command in this process, with nothing of ours in its environment but what is given. */
export async function minutebook(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>> = {},
): Promise<Finished> {
  for (const [name, value] of Object.entries({ ...NOTHING, ...environment })) {
    vi.stubEnv(name, value);
  }
  const output = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((name) =>
    vi.spyOn(process[name], "write").mockImplementation((chunk, ...more) => {
      output[name] += String(chunk);
      for (const taken of more) if (typeof taken === "function") taken();
      return true;
    }),
  );
  const before = process.exitCode;
  process.exitCode = 0;
  try {
    await run(args);
    return { status: Number(process.exitCode), ...output };
  } finally {
    process.exitCode = before;
    for (const spy of spies) spy.mockRestore();
    vi.unstubAllEnvs();
  }
}

const NOTHING = {
  DATABASE_URL: undefined,
  READER_DATABASE_URL: undefined,
  OWNER_DATABASE_URL: undefined,
  SUPERUSER_DATABASE_URL: undefined,
  AUDITOR_DATABASE_URL: undefined,
  MINUTEBOOK_SERVER: undefined,
  MINUTEBOOK_TOKEN: undefined,
};
