/**
 * Tests that fill a real disk. Mounting a small tmpfs takes root on Linux; without a disk of its own a
 * test could only pretend that there is no room, or fill the machine's. Where it cannot be mounted the
 * test is listed as skipped. In CI it is never skipped: a runner that cannot mount fails.
 */
import { test } from "vitest";

const CAN_MOUNT = process.getuid?.() === 0 && process.platform === "linux";

/** @param timeout in milliseconds */
export function testOnSmallDisk(promise: string, run: () => Promise<void>, timeout?: number): void {
  test.runIf(CAN_MOUNT || process.env["CI"] !== undefined)(promise, run, timeout);
}
