/** Names beside numbers, where they were asked for. The log has none, so that nobody makes them again from it. */
import type { Column, Page, Row } from "../../core/export/tables.ts";
import { NAMED_KINDS, type NamedId, type NamedKind, readNames } from "../../store/names.ts";
import type { Origin, Sheet } from "./source.ts";

const KINDS: Readonly<Record<string, NamedKind>> = {
  namespace_id: "namespace",
  root_namespace_id: "namespace",
  project_id: "project",
  runner_id: "runner",
};

/** Where the numbers of a kind stand in a row. */
interface Place {
  kind: NamedKind;
  at: number;
}

/** The same rows with columns more at their end: one for each kind of number that they have. */
export function named({ columns, pages }: Sheet, origin: Origin): Sheet {
  const places = NAMED_KINDS.flatMap((kind) => {
    const at = columns.findIndex(({ name }) => KINDS[name] === kind);
    return at < 0 ? [] : [{ kind, at }];
  });
  const names = places.map(({ kind }): Column => {
    return { name: `${kind}_name`, type: "text", nullable: true };
  });
  return { columns: [...columns, ...names], pages: joined(pages, places, origin) };
}

async function* joined(
  pages: AsyncIterable<Page>,
  places: readonly Place[],
  { tx, log }: Origin,
): AsyncGenerator<Page> {
  for await (const page of pages) {
    const known = new Map<string, string>();
    for (const row of await readNames(tx, log, idsIn(page, places))) {
      known.set(`${row.kind}/${row.id}`, row.name);
    }
    const nameOf = (row: Row, { kind, at }: Place) => known.get(`${kind}/${row[at]}`) ?? null;
    yield page.map((row) => [...row, ...places.map((place) => nameOf(row, place))]);
  }
}

/** Each once. */
function idsIn(page: Page, places: readonly Place[]): NamedId[] {
  return places.flatMap(({ kind, at }) => {
    const ids = new Set(page.map((row) => row[at] ?? null));
    return Array.from(ids).flatMap((id) => (id === null ? [] : [{ kind, id }]));
  });
}
