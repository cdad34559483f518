/** The lines of a run, found from its selection: the same ones whenever it is asked. */
import {
  type CreditForm,
  type CreditLine,
  creditLine,
  ofAdjustment,
  ofPack,
  type Selection,
  termsOf,
  wholeMinutes,
} from "../../core/credit-run.ts";
import type { Factor } from "../../core/factor.ts";
import { misshapen } from "../../core/problem.ts";
import type { Transaction } from "../../store/connect.ts";
import { readRoom, selectUsages } from "../../store/credit-selections.ts";
import { hasNamespaceList, readNamespaceList } from "../../store/namespace-lists.ts";

/** A line, and the machine type of the usage that it is about. */
export interface FoundLine {
  line: CreditLine;
  machineType?: string;
}

export interface Asked {
  log: string;
  form: CreditForm;
  selection: Selection;
}

/**
 * @throws Problem `invalid-request` for a selection that the form does not go with, or a list that is not here
 */
export async function* selectLines(
  tx: Transaction,
  { log, form, selection }: Asked,
): AsyncGenerator<FoundLine> {
  const terms = termsOf(form, selection);
  const { namespaces_sha256: list } = selection;
  if (list !== undefined && !(await hasNamespaceList(tx, log, list))) {
    misshapen("credit_run", "namespaces_sha256");
  }
  if (terms.kind === "credit") {
    const room = await readRoom(tx, log, selection);
    for await (const usage of selectUsages(tx, log, selection)) {
      const line = creditLine(usage, terms.share, room);
      if (line !== undefined) yield { line: ofAdjustment(line), machineType: usage.machine_type };
    }
    return;
  }
  const { expires_in, purchased_in } = selection;
  if (expires_in === undefined) misshapen("credit_run", "expires_in");
  if (purchased_in === undefined) misshapen("credit_run", "purchased_in");
  const pack = (namespace_id: string, minutes: bigint): FoundLine => ({
    line: ofPack({ expires_in, minutes: String(minutes), namespace_id, purchased_in }),
  });
  if (terms.kind === "pack") {
    for (const [namespace, minutes] of await sharesOf(tx, { log, selection }, terms.share)) {
      yield pack(namespace, minutes);
    }
  } else if (list !== undefined) {
    for await (const namespace of readNamespaceList(tx, log, list)) {
      yield pack(namespace, terms.minutes);
    }
  } else {
    const used = await usedBy(tx, { log, selection });
    for (const namespace of inOrder(used)) yield pack(namespace, terms.minutes);
  }
}

async function sharesOf(
  tx: Transaction,
  asked: Omit<Asked, "form">,
  share: Factor,
): Promise<[string, bigint][]> {
  const used = await usedBy(tx, asked);
  const shares = inOrder(used).map((namespace): [string, bigint] => {
    return [namespace, wholeMinutes(used.get(namespace) ?? 0n, share)];
  });
  return shares.filter(([, minutes]) => minutes > 0n);
}

/** What is left of the usage of each namespace that has any. */
async function usedBy(
  tx: Transaction,
  { log, selection }: Omit<Asked, "form">,
): Promise<Map<string, bigint>> {
  const used = new Map<string, bigint>();
  for await (const { left, namespace_id } of selectUsages(tx, log, selection)) {
    used.set(namespace_id, (used.get(namespace_id) ?? 0n) + left);
  }
  return used;
}

/** Namespaces as numbers; their digits differ in count. */
function inOrder(used: ReadonlyMap<string, bigint>): string[] {
  return [...used.keys()].sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
}
