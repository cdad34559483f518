/** The statement of a closed month as a page: to be read, printed and checked. */
import type { Child } from "hono/jsx";
import {
  formatSignedComputeMs,
  parseSignedComputeMs,
  signedComputeMinutes,
} from "../core/charge.ts";
import { shownParts } from "../core/month/rounding.ts";
import type { Statement } from "../core/month/statement.ts";
import { zonedText } from "../core/time-zone.ts";
import { InstantText } from "../core/unit.ts";
import { type Page, page } from "./page.tsx";

/** @param timeZone that instants are shown in, UTC if none is named: nothing else on the page follows it */
export function statementPage(stated: Statement, timeZone?: string): Page {
  const statement = timeZone === undefined ? stated : zoned(stated, timeZone);
  const month = monthName(statement.month);
  const title = `Compute usage, ${month}`;
  const children = (
    <main>
      <h1>{title}</h1>
      <p class="faint">
        {statement.instance.unique_id} ({statement.instance.platform}), closed {statement.closed.at}
      </p>
      {timeZone !== undefined && (
        <p class="faint">Instants are shown in {timeZone}; months, days and sums are UTC's.</p>
      )}
      <Anchor {...statement} />
      <Allocation {...statement} />
      <Usage {...statement} />
      <Late {...statement} />
      <Corrections {...statement} />
      <Packs {...statement} />
      <Cards {...statement} />
      <Preconditions {...statement} />
      <Proof {...statement} />
    </main>
  );
  return page({ title, children });
}

/** With each instant as clocks show it there, wherever it stands. */
function zoned<T>(value: T, timeZone: string): T;
function zoned(value: unknown, timeZone: string): unknown {
  if (typeof value === "string") {
    return InstantText.safeParse(value).success ? zonedText(value, timeZone) : value;
  }
  if (Array.isArray(value)) return value.map((item) => zoned(item, timeZone));
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value);
  return Object.fromEntries(members.map(([name, part]) => [name, zoned(part, timeZone)]));
}

function Anchor({ anchor, checkpoint }: Statement) {
  if (anchor.kind === "none") {
    return (
      <p class="alarm">
        UNANCHORED: nobody outside the operator's control holds a checkpoint of these figures.
      </p>
    );
  }
  const by = anchor.by.map(({ name, at }) =>
    anchor.kind === "locked" ? `the archive's lock until ${at}` : `${name} at ${at}`,
  );
  return (
    <p>
      <span class="held">Anchored, as the operator says</span>: the checkpoint of {checkpoint.size}{" "}
      entries is held by {by.join(", ")}. An audit with a policy of one's own proves it.
    </p>
  );
}

interface Line {
  name: string;
  /** In 10⁻⁶ compute-milliseconds. */
  amount: bigint;
}

/** Parts of a sum, in minutes that add up, with the exact figures beside them. */
function Sum({
  caption,
  lines,
  total,
}: {
  caption: string;
  lines: readonly Line[];
  total: string;
}) {
  const shown = shownParts(lines.map(({ amount }) => amount));
  const sum = lines.reduce((added, { amount }) => added + amount, 0n);
  return (
    <Table caption={caption} head={["", "minutes", "exact milliseconds"]}>
      <tbody>
        {lines.map(({ name, amount }, at) => (
          <Row name={name} figures={[shown[at] ?? "", formatSignedComputeMs(amount)]} />
        ))}
      </tbody>
      <tfoot>
        <Row name={total} figures={[signedComputeMinutes(sum, 2), formatSignedComputeMs(sum)]} />
      </tfoot>
    </Table>
  );
}

function Table(props: { caption: string; head: readonly string[]; children: Child }) {
  const [first, ...figures] = props.head;
  return (
    <div class="scroll">
      <table>
        <caption>{props.caption}</caption>
        <thead>
          <tr>
            <th scope="col">{first}</th>
            {figures.map((name) => (
              <th scope="col" class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        {props.children}
      </table>
    </div>
  );
}

function Row({ name, figures }: { name: string; figures: readonly string[] }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      {figures.map((figure) => (
        <td class="number">{figure}</td>
      ))}
    </tr>
  );
}

function Allocation({ allocations }: Statement) {
  const { included, packs, overage, absorbed, not_billable } = allocations;
  const lines = [
    { name: "Included in the plan", amount: parseSignedComputeMs(included) },
    { name: "From packs", amount: parseSignedComputeMs(packs) },
    { name: "Overage, charged", amount: parseSignedComputeMs(overage) },
    { name: "Absorbed within the grace", amount: parseSignedComputeMs(absorbed) },
    { name: "Not billable", amount: parseSignedComputeMs(not_billable) },
  ];
  return (
    <section>
      <h2>Allocation</h2>
      <Sum caption="All namespaces together" lines={lines} total="Net usage" />
    </section>
  );
}

function Usage({ usage, totals }: Statement) {
  const lines = usage.map((line) => ({
    name: `${line.machine_type || "corrections of months"}, ${line.tracking.replace("_", " ")}`,
    amount: netOf(line),
  }));
  return (
    <section>
      <h2>By machine type</h2>
      <p>
        {totals.jobs} builds of {totals.duration_ms} ms in all.
      </p>
      <Sum caption="Net of corrections" lines={lines} total="Net usage" />
    </section>
  );
}

function Late({ late }: Statement) {
  if (late.length === 0) return null;
  const lines = late.map((line) => ({
    name: `Used in ${monthName(line.usage_month)}`,
    amount: netOf(line),
  }));
  return (
    <section>
      <h2>Late</h2>
      <Sum caption="Part of the above, of months that were closed" lines={lines} total="Late" />
    </section>
  );
}

function Corrections({ corrections }: Statement) {
  if (corrections.length === 0) return null;
  const lines = corrections.map(({ reason, amount, lines: count }) => ({
    name: `${reason} (${count})`,
    amount: parseSignedComputeMs(amount),
  }));
  return (
    <section>
      <h2>Corrections</h2>
      <Sum caption="By reason, with how many there are" lines={lines} total="Corrections" />
    </section>
  );
}

function Packs({ packs }: Statement) {
  if (packs.lines === "0") return null;
  const lines = [
    { name: "Opening", amount: parseSignedComputeMs(packs.opening) },
    { name: "Bought", amount: parseSignedComputeMs(packs.bought) },
    { name: "Drawn", amount: -parseSignedComputeMs(packs.drawn) },
    { name: "Expired", amount: -parseSignedComputeMs(packs.expired) },
    { name: "Refunded", amount: -parseSignedComputeMs(packs.refunded) },
  ];
  return (
    <section>
      <h2>Packs</h2>
      <Sum caption={`Packs that moved: ${packs.lines}`} lines={lines} total="Closing" />
    </section>
  );
}

function Cards({ cards }: Statement) {
  return (
    <section>
      <h2>Rate cards in force</h2>
      <Table caption="By the entry that each is" head={["Entry", "of", "from", "source"]}>
        <tbody>
          {cards.map(({ index, tracking, effective_from, source }) => (
            <Row name={index} figures={[tracking.replace("_", " "), effective_from, source]} />
          ))}
        </tbody>
      </Table>
    </section>
  );
}

function Preconditions({ preconditions }: Statement) {
  return (
    <section>
      <h2>Before it was closed</h2>
      <dl>
        {preconditions.map(({ code, evidence }) => (
          <>
            <dt>{code}</dt>
            <dd>
              {Object.entries(evidence)
                .map(([name, value]) => `${name.replaceAll("_", " ")} ${value || "none"}`)
                .join(", ")}
            </dd>
          </>
        ))}
      </dl>
    </section>
  );
}

function Proof({ log, month, range, closing, closed, checkpoint, ...rest }: Statement) {
  const named = [
    ["Log", log],
    ["Entries", `${range.from} … ${range.to}, cut off by entry ${closing.index} at ${closing.at}`],
    ["Closed by", `entry ${closed.index}`],
    ["Checkpoint", `${checkpoint.size} entries, root ${checkpoint.root}`],
    ["Allocations", `${rest.allocations.lines} lines, SHA-256 ${rest.allocations.sha256}`],
    ["Packs", `${rest.packs.lines} lines, SHA-256 ${rest.packs.sha256}`],
    ["Accounts", `${rest.accounts.lines} lines, SHA-256 ${rest.accounts.sha256}`],
    ["Rollups", `SHA-256 ${rest.rollups_sha256}`],
    ...rest.exports.map(({ name, rows, sha256 }) => {
      return [`File ${name}`, `${rows} rows, SHA-256 ${sha256}`] as const;
    }),
  ] as const;
  return (
    <section>
      <h2>Proof</h2>
      <p>
        All of this follows from the log's entries:{" "}
        <code>
          minutebook-audit statement ARCHIVE {log} --vkey KEY --month{" "}
          {month.slice(0, "YYYY-MM".length)}
        </code>
      </p>
      <dl>
        {named.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>
              <code>{value}</code>
            </dd>
          </>
        ))}
      </dl>
    </section>
  );
}

function netOf(line: Statement["totals"]): bigint {
  return parseSignedComputeMs(line.compute_ms) + parseSignedComputeMs(line.adjustment_compute_ms);
}

function monthName(month: string): string {
  const options = { month: "long", year: "numeric", timeZone: "UTC" } as const;
  return new Intl.DateTimeFormat("en", options).format(new Date(`${month}T00:00:00Z`));
}
