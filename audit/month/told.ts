/** Limits, packs and accounts as entries tell them, for whoever does not judge them. */
import type { Entry } from "../../src/core/entry.ts";
import type { ReadEntry } from "../archive/block.ts";
import { append } from "../prefix/state.ts";
import type { Limit, Version } from "./quota.ts";
import type { Account, Told } from "./terms.ts";

export class Telling implements Told {
  readonly accounts = new Map<string, Account[]>();
  readonly limits = new Map<string, Limit[]>();
  readonly packs = new Map<string, Version[]>();

  take({ body, index, kind }: Entry | ReadEntry): void {
    switch (kind) {
      case "account":
        append(this.accounts, body.namespace_id, { ...body, index });
        break;
      case "quota":
        append(this.limits, body.namespace_id, { ...body, index });
        break;
      case "pack":
        append(this.packs, JSON.stringify([body.source, body.pack_id]), { ...body, index });
        break;
      default:
    }
  }
}
