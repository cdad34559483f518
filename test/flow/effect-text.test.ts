/** What an effect says that is too long for a proposal. */
import { expect, test } from "vitest";
import { isSayable } from "../../src/core/approval.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { shortened } from "../../src/flow/control/effect-text.ts";
import { sha256 } from "../../src/flow/report/signature.ts";

test.each(["x", '"', "\\", "\u{1f600}"])(
  "an effect of any length is said by its count, its digest and its first lines: of %s",
  (letter) => {
    const taken: Json[] = Array.from({ length: 2_000 }, (_, i) => ({
      value: `${i} ${letter.repeat(40)}`,
    }));
    const factors = Object.fromEntries(taken.map((line, i) => [`runner ${i}`, line]));
    const whole = { stands: "7", taken, factors };
    expect(isSayable(whole)).toBe(false);
    const short = shortened(whole);
    expect(isSayable(short)).toBe(true);
    const { first } = short["taken"] as unknown as { first: Json[] };
    expect(first.length).toBeGreaterThan(20);
    const sum = (of: Json) => encodeBase64(sha256(encodeUtf8(canonical(of))));
    expect(short).toEqual({
      stands: "7",
      taken: { count: "2000", first: taken.slice(0, first.length), sha256: sum(taken) },
      factors: { count: "2000", first: expect.any(Array), sha256: sum(factors) },
    });
  },
);
