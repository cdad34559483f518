/**
 * The portal's lines of a month, and the packs that were bought, as a FOCUS file (docs/focus.md). Its figures are
 * the log's; its money is a price list's, and without one it has none.
 */
import { CREDIT_RUN_SOURCE } from "../../core/beside.ts";
import type { Parameters } from "../../core/export/manifest.ts";
import type { ExportName, Row } from "../../core/export/tables.ts";
import { quotaOfMonth } from "../../core/month/allocation.ts";
import { type PackRoll, rollForward } from "../../core/month/roll-forward.ts";
import { packName } from "../../core/pack.ts";
import type { Prices } from "../../core/price.ts";
import { Problem } from "../../core/problem.ts";
import type { PackFact, QuotaFacts } from "../../core/quota/quota.ts";
import { type Charge, chargesOf, type Sale, saleOf } from "../../format/focus/charge.ts";
import { FOCUS_VERSIONS, type FocusVersion, focusColumns } from "../../format/focus/columns.ts";
import { FocusFile, type Names } from "../../format/focus/file.ts";
import { type Pack, PackDeal } from "../../format/focus/packs.ts";
import { type Line, lineOf, partsOf } from "../../format/focus/portions.ts";
import { readPayers } from "../../store/accounts.ts";
import { listLogs } from "../../store/logs.ts";
import { readPackNamespaces } from "../../store/month-figures.ts";
import { readNames } from "../../store/names.ts";
import { endOf } from "../month/conditions.ts";
import type { CutOff } from "../month/cut-off.ts";
import { split } from "../month/split.ts";
import { decodedAs } from "../usage/show.ts";
import { cutOffOf } from "./cut-off.ts";
import { portalApart } from "./portal.ts";
import type { Origin, Source } from "./source.ts";

const [DEFAULT_VERSION] = FOCUS_VERSIONS;
const NO_PACKS = new PackDeal([]);
/** Namespaces whose facts are asked for at once. */
const BATCH = 500;

/** What is not said of a FOCUS file, as it will be: its manifest says all of it. */
export function completed(
  name: ExportName,
  parameters: Parameters,
  prices: Prices | undefined,
): Parameters {
  if (name !== "focus") return parameters;
  return {
    focus_version: DEFAULT_VERSION,
    ...(prices !== undefined && { prices_sha256: prices.sha256 }),
    ...parameters,
  };
}

export function isFocusVersion(text: string): text is FocusVersion {
  return FOCUS_VERSIONS.some((version) => version === text);
}

/**
 * @param known the price list of this process
 * @throws Problem `other-prices` where it was asked for with another one, `invalid-request` on a version of the
 *   specification that is not known; from its pages `no-price`, `no-account`
 */
export function focus(known: Prices | undefined): Source {
  return (origin) => {
    const { focus_version: version = DEFAULT_VERSION, prices_sha256 } = origin.parameters;
    if (!isFocusVersion(version)) {
      throw new Problem("invalid-request", { members: ["focus_version"] });
    }
    const prices = prices_sha256 === undefined ? undefined : known;
    if (prices?.sha256 !== prices_sha256) throw new Problem("other-prices");
    return {
      columns: focusColumns(version, prices !== undefined),
      pages: pages(origin, version, prices),
    };
  };
}

async function* pages(
  origin: Origin,
  version: FocusVersion,
  prices: Prices | undefined,
): AsyncGenerator<Row[]> {
  const { tx, log } = origin;
  const cutOff = await cutOffOf(origin);
  const { month } = cutOff;
  const file = new FocusFile({ version, prices, month, instance: await instanceOf(origin) });
  // Of the last namespace that drew on packs, which the page before may have ended in.
  let open: { namespace: string; deal: PackDeal } | undefined;
  for await (const page of portalApart(origin)) {
    const lines = page.map(lineOf);
    const begun = lines.filter(({ namespace_id }) => namespace_id !== open?.namespace);
    const deals = await dealsOf(origin, cutOff, begun);
    if (open !== undefined) deals.set(open.namespace, open.deal);
    const charges = lines.flatMap((line) => {
      const namespace = line.namespace_id;
      const deal = deals.get(namespace);
      // Only one that has packs goes on: a namespace may draw its first in a later page than its first line.
      if (deal !== undefined) open = { namespace, deal };
      return chargesOf(line, partsOf(line, deal ?? NO_PACKS), month);
    });
    yield file.rows(charges, await namesOf(origin, charges));
  }
  const withPacks = await readPackNamespaces(tx, log, cutOff.index);
  for (let from = 0; from < withPacks.length; from += BATCH) {
    const sales = await salesOf(origin, cutOff, withPacks.slice(from, from + BATCH));
    const charges = sales.map((sale) => saleOf(sale, month));
    yield file.rows(charges, await namesOf(origin, charges));
  }
}

/** By namespace, of those that packs were drawn for. */
async function dealsOf(
  { tx, log }: Origin,
  cutOff: CutOff,
  lines: readonly Line[],
): Promise<Map<string, PackDeal>> {
  const drawing = lines.filter(({ amounts }) => amounts.pack !== 0n);
  const namespaces = [...new Set(drawing.map(({ namespace_id }) => namespace_id))];
  const facts = await factsOf({ tx, log }, cutOff, namespaces);
  return new Map(
    facts.map(({ namespace, facts }) => {
      const { packs } = quotaOfMonth(facts, cutOff.month);
      const draws = packs.map(({ index, drawn }) => ({ pack: packAt(facts.packs, index), drawn }));
      return [namespace, new PackDeal(draws.filter(({ drawn }) => drawn > 0n))];
    }),
  );
}

/** Packs of these namespaces that were bought, granted, or given back. */
async function salesOf(
  { tx, log }: Origin,
  cutOff: CutOff,
  namespaces: readonly string[],
): Promise<Sale[]> {
  const at = { until: endOf(cutOff.month), below: cutOff.index };
  const payers = await readPayers(tx, log, namespaces, at);
  const known = await factsOf({ tx, log }, cutOff, namespaces);
  return known.flatMap(({ namespace, facts }) => {
    const payer = payers.get(namespace);
    return rollForward(facts, cutOff.month)
      .filter((roll) => soldIn(roll) !== 0n)
      .map((roll) => ({
        account_id: payer?.account_id || null,
        subscription_id: payer?.subscription_id || null,
        namespace_id: namespace,
        pack: packAt(facts.packs, roll.index),
        amount: soldIn(roll),
      }));
  });
}

function soldIn({ bought, refunded }: PackRoll): bigint {
  return bought - refunded;
}

async function factsOf(
  { tx, log }: Pick<Origin, "log" | "tx">,
  cutOff: CutOff,
  namespaces: readonly string[],
): Promise<{ namespace: string; facts: QuotaFacts }[]> {
  const nothing = namespaces.map((namespace) => ({ namespace, posted: [] }));
  const known = await split(tx, log, cutOff, nothing);
  return Array.from(known, ([namespace, { facts }]) => ({ namespace, facts }));
}

const GRANTED = packName({ source: CREDIT_RUN_SOURCE, pack_id: "" });

function packAt(versions: readonly PackFact[], index: bigint): Pack {
  const version = versions.find((each) => each.index === index);
  if (version === undefined) throw new Error("focus: drawn from no pack");
  const { pack, purchased_in } = version;
  return { index, purchased_in, isGranted: pack.startsWith(GRANTED) };
}

/** Of what these are about; none, where they were not asked for. */
async function namesOf(
  { tx, log, parameters }: Origin,
  charges: readonly Charge[],
): Promise<Names> {
  const ids = charges.flatMap(({ namespace_id, project_id }) => [
    { kind: "namespace", id: namespace_id } as const,
    ...(project_id === null ? [] : [{ kind: "project", id: project_id } as const]),
  ]);
  const rows = parameters.names === undefined ? [] : await readNames(tx, log, ids);
  const of = (kind: string) => {
    return new Map(rows.filter((row) => row.kind === kind).map(({ id, name }) => [id, name]));
  };
  return { namespaces: of("namespace"), projects: of("project") };
}

async function instanceOf({ tx, log }: Origin): Promise<string> {
  const [listed] = await listLogs(tx, log);
  if (listed === undefined) throw new Error("focus: of no log");
  return decodedAs("log", listed.genesis).body.unique_id;
}
