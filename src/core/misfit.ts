/** What of a document does not have its shape, member by member. */
import type { z } from "zod";
import type { Extension } from "./problem.ts";

/** So that a member that is not there is told from one of another type. */
export const REPORTING = { reportInput: true };

/**
 * For `invalid-request`: `members` are all by name, as `lines.0.amount`, and each is `missing`, `unknown` (the
 * shape has none of that name), or `not_allowed` as it is. None is named where the document itself is no object.
 *
 * @param error of a parse with `REPORTING`
 * @param above the document's own name, where it is a member
 */
export function misfits({ issues }: z.ZodError, above?: string): Extension {
  const found = {
    missing: new Set<string>(),
    unknown: new Set<string>(),
    not_allowed: new Set<string>(),
  };
  for (const issue of issues) {
    const path = above === undefined ? issue.path : [above, ...issue.path];
    if (issue.code === "unrecognized_keys") {
      for (const key of issue.keys) found.unknown.add([...path, key].join("."));
    } else if (path.length > 0) {
      found[issue.input === undefined ? "missing" : "not_allowed"].add(path.join("."));
    }
  }
  return told(found);
}

/** By how they do not fit; what is empty is not said. */
export function told(found: Readonly<Record<string, Iterable<string>>>): Extension {
  const kinds = Object.entries(found).map(([kind, names]) => [kind, [...names]] as const);
  const members = new Set(kinds.flatMap(([, names]) => names));
  if (members.size === 0) return {};
  return {
    members: [...members],
    ...Object.fromEntries(kinds.filter(([, names]) => names.length > 0)),
  };
}
