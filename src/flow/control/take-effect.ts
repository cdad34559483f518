/** What was just written counts at once, for whoever asks next of this service. */
import type { Content } from "../../core/approval.ts";
import type { Action } from "../../core/control.ts";
import type { Keyring } from "../key/keyring.ts";
import type { Receipt } from "../log/commit-entry.ts";
import type { Asking } from "../quota/ask.ts";
import { bringInForce } from "../quota/bring-in-force.ts";
import type { Asked } from "./effects.ts";

/** After the commit, and before its writer is answered. */
export async function takeEffect(
  { keyring, quota }: { keyring: Pick<Keyring, "forget">; quota: Asking },
  { log, action, content }: { log: string; action: Action; content: Content },
  receipt: Receipt,
): Promise<void> {
  if (action === "log_key") keyring.forget(log);
  for (const namespace of namespacesOf(action, content)) {
    await bringInForce(quota, { log, namespace }, receipt);
  }
}

/** Those whose quota it may have changed. Of a credit run they come with its lines. */
function namespacesOf(action: Action, content: Content): ReadonlySet<string> {
  switch (action) {
    case "quota":
    case "pack":
      return new Set([(content as Asked<"quota" | "pack">).namespace_id]);
    case "adjustment": {
      const { lines } = content as unknown as Asked<"adjustment">;
      return new Set(lines.map(({ namespace_id }) => namespace_id));
    }
    default:
      return new Set();
  }
}
