import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, type House, newLog, openHouse } from "./house.ts";

let house: House;
let log: string;
let token: string;

beforeAll(async () => {
  house = await openHouse();
  ({ log, token } = await newLog(house, "away", 1));
});

afterAll(() => house.close());

/** Sessions that are there stay; a new one of a reader is refused. */
async function refuseReaders(): Promise<void> {
  const { superuser } = house.database;
  const [row] = await superuser<{ name: string }[]>`select current_database() as name`;
  await superuser`alter database ${superuser(row?.name ?? "")} connection limit 0`;
  await superuser`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database() and application_name = 'minutebook-reader'
  `;
}

test("while the readers' database is away every question is answered busy, and the log says why", async () => {
  await refuseReaders();
  const paths = [
    `usage?log=${log}`,
    `jobs/${log}/1`,
    "logs",
    ...["keys", "conflicts", "holds"].map((register) => `logs/${log}/${register}`),
  ];
  for (const path of paths) {
    const { status, json, headers } = await ask(house, `GET /v1/${path}`, { token });
    expect([path, status, json["code"]]).toEqual([path, 503, "busy"]);
    expect(headers.get("retry-after")).toBe("1");
  }
  const said = house.logged.filter((line) => line.includes("http, answered busy"));
  expect(said).toHaveLength(paths.length);
  expect(house.logged.join()).not.toContain("answered 500");
});
