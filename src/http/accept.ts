/** Which of several media types somebody wants (RFC 9110 §12.5.1). */
import { parseAccept } from "hono/utils/accept";

/**
 * @param header of Accept; absent, all are welcome
 * @param types in lower case; of those that are wanted alike, or not at all, the first
 */
export function preferred<T extends string>(
  header: string | undefined,
  types: readonly [T, ...T[]],
): T {
  const ranges = parseAccept(header ?? "*/*").map(
    ({ type, q }) => [type.toLowerCase(), q] as const,
  );
  const weights = new Map(ranges.toReversed());
  const weight = (type: string): number =>
    weights.get(type) ?? weights.get(type.replace(/\/.*/, "/*")) ?? weights.get("*/*") ?? 0;
  return types.reduce((best, type) => (weight(type) > weight(best) ? type : best));
}
