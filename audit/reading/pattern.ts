/**
 * Patterns of canonical JSON. One that writes out every member of a shape, in order, with the pattern of
 * its value, settles form and shape of a text in one go: nothing is parsed, and nothing written again.
 * A pattern may take less than the schema of its shape, and never more.
 */

/** A day from the 29th on is left to whoever knows February. */
const DATE =
  "(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31";
const YEAR = "(?!0000)[0-9]{4}";
/** Six bits of which the last two, or the last four, are none of a byte's. */
const FOUR_BITS = "[AEIMQUYcgkosw048]";

/** What stands between the quotes of each scalar of `core/unit.ts`. */
export const SCALAR = {
  /** Up to 18 digits, which are less than 2^63 whatever they are. */
  integer: "0|[1-9][0-9]{0,17}",
  positive: "[1-9][0-9]{0,17}",
  instant: `${YEAR}-(?:${DATE})T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}\\.[0-9]{3}Z`,
  month: `${YEAR}-(?:0[1-9]|1[0-2])-01`,
  /** Printable ASCII that needs no escape. */
  text: "[ !#-[\\]-~]{0,255}",
  nonEmpty: "[ !#-[\\]-~]{1,255}",
  word: "[a-z0-9_]{0,64}",
  logId: "[0-9a-f]{32}",
  hash: `[A-Za-z0-9+/]{42}${FOUR_BITS}=`,
  fraction: "(?:0|[1-9][0-9]{0,18})/[1-9][0-9]{0,18}",
  charge: "(?:0|[1-9][0-9]{0,20})\\.[0-9]{6}",
} as const;

/** A string, whose text is captured. */
export const text = (pattern: string): string => `"(${pattern})"`;

/** An object of these members, in this order, which must be the canonical one; a name with `?` may be missing. */
export function object(members: Readonly<Record<string, string>>): string {
  const parts = Object.entries(members).map(([name, pattern], i) => {
    const comma = i === 0 ? "" : ",";
    return name.endsWith("?")
      ? `(?:${comma}"${name.slice(0, -1)}":${pattern})?`
      : `${comma}"${name}":${pattern}`;
  });
  return `\\{${parts.join("")}\\}`;
}
