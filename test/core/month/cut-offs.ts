/** The cut-offs of a history that no withdrawal followed, by their places in it. */
import type { Event } from "../quota/ledger.ts";

export function cutOffs(seen: readonly Event[]): { index: number; month: string }[] {
  const stands: { index: number; month: string }[] = [];
  seen.forEach((event, index) => {
    if (event.kind === "closing") stands.push({ index, month: event.month });
    if (event.kind === "withdrawal") stands.pop();
  });
  return stands;
}
