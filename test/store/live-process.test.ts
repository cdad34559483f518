import { expect, test } from "vitest";
import type { LiveStore, NamespaceKey } from "../../src/core/quota/live.ts";
import { openLiveProcess } from "../../src/store/live-process.ts";
import { command, figures, goOn, run } from "../core/quota/live.ts";

const key = (namespace: number): NamespaceKey => ({ log: "l", namespace: String(namespace) });
const unbounded = figures({ startBound: undefined, runBound: undefined });

async function keptBy(store: LiveStore): Promise<NamespaceKey[]> {
  const keys: NamespaceKey[] = [];
  for await (const page of store.walk()) keys.push(...page);
  return keys;
}

test("namespaces without bounds, as anybody makes up, push out no namespace that has some", async () => {
  const store = openLiveProcess({ namespacesMax: 3 });
  await store.run(key(1), command([run("1", 5n)]));
  for (let made = 2; made < 50; made += 1) {
    await store.run(key(made), command([run(String(made), 0n)], { figures: unbounded }));
  }
  const kept = await store.run(key(1), command([goOn("1")]));
  expect(kept).toMatchObject({ live: 5n, results: [{ known: true }] });
  expect(await keptBy(store)).toEqual([key(1), key(48), key(49)]);
});

test("a namespace that gets a bound is kept with those that have one, and without it no longer", async () => {
  const store = openLiveProcess({ namespacesMax: 2 });
  await store.run(key(1), command([run("1", 5n)], { figures: unbounded }));
  await store.run(key(1), command([goOn("1")], { figures: figures({ asOf: 11n }) }));
  await store.run(key(2), command([run("2", 5n)], { figures: unbounded }));
  await store.run(key(3), command([run("3", 5n)], { figures: unbounded }));
  expect(await keptBy(store)).toEqual([key(1), key(3)]);
  const lifted = { asOf: 12n, startBound: undefined, runBound: undefined };
  await store.run(key(1), command([goOn("1")], { figures: figures(lifted) }));
  await store.run(key(4), command([run("4", 5n)]));
  expect(await keptBy(store)).toEqual([key(4), key(1)]);
});
