/** Waits for what other processes and connections bring about. */
import { vi } from "vitest";

export function eventually(check: () => void | Promise<void>): Promise<void> {
  return vi.waitFor(check, { timeout: 20_000, interval: 20 });
}
