/**
 * Entries that decide how later ones are judged: could the service have let them in after what stood
 * before them? Each is then taken in as it stands, so that what follows is judged by what was said.
 */
import type { z } from "zod";
import { admissibleKey, thumbprint, type Verify, verdict } from "../../src/core/ed25519.ts";
import type { Body, EntryOf } from "../../src/core/entry.ts";
import { parseVkey } from "../../src/core/note.ts";
import { Claim, Rotation, TYP } from "../../src/core/report.ts";
import { decodeBase64url } from "../../src/core/text.ts";
import type { ReadEntry } from "../archive/block.ts";
import type { FindingCode, Findings, OpenCode } from "../finding.ts";
import { monthAfter, readFraction } from "../rating.ts";
import { append, FIRST_KEY, type Key, type State } from "./state.ts";
import { readStatement, type Statement } from "./statement.ts";

export class Admission {
  readonly #state: State;
  readonly #findings: Findings;
  readonly #open: Findings<OpenCode>;
  readonly #verify: Verify;
  /** Of the entry at hand. */
  #index = 0n;
  #at = "";

  constructor(
    state: State,
    outcome: { findings: Findings; open: Findings<OpenCode> },
    verify: Verify,
  ) {
    this.#state = state;
    this.#findings = outcome.findings;
    this.#open = outcome.open;
    this.#verify = verify;
  }

  /** Kinds that decide nothing are passed over. */
  admit(entry: ReadEntry): void {
    this.#index = entry.index;
    this.#at = entry.at;
    if ("approval" in entry.body) this.#approval(entry.body.approval);
    switch (entry.kind) {
      case "enrolment":
        this.#enrolment(entry.body);
        break;
      case "key":
        this.#key(entry.body);
        break;
      case "key_rotated":
        this.#keyRotated(entry.body);
        break;
      case "key_revoked":
        this.#keyRevoked(entry.body);
        break;
      case "rate_card":
        this.#rateCard(entry);
        break;
      case "project_class":
        this.#projectClass(entry.body);
        break;
      case "quota":
        this.#quota(entry);
        break;
      case "pack":
        this.#pack(entry.body);
        break;
      case "service":
        this.#service(entry.body);
        break;
      case "month_closing":
        this.#monthClosing(entry);
        break;
      case "month_closing_withdrawn":
        this.#withdrawn(entry.body);
        break;
      case "log_key":
        this.#logKey(entry.body);
        break;
      default:
    }
  }

  #expect(holds: boolean, code: FindingCode, detail: string): void {
    if (!holds) this.#findings.add(code, { index: this.#index }, detail);
  }

  /** No kind of entry that this version knows is an approval: what names one cannot be judged. */
  #approval(approval: string): void {
    if (approval !== "") {
      this.#open.add("unknown-approval", { index: this.#index }, `entry ${approval}`);
    } else {
      this.#expect(this.#state.log.control === "single", "approval-required", "it names none");
    }
  }

  #starts(from: string, earlier: readonly unknown[] | undefined): void {
    const first = earlier === undefined || earlier.length === 0;
    const detail = `from ${from}, written ${this.#at}`;
    this.#expect(first || from > this.#at, "starts-in-the-past", detail);
  }

  #enrolment(body: Body<"enrolment">): void {
    const state = this.#state;
    for (const line of body.runners) {
      const needed = line.runner_type !== "instance";
      this.#expect(
        needed === body.namespaces.length > 0,
        "namespaces-needed",
        `${line.runner_type} runner, ${body.namespaces.length} namespaces`,
      );
      const earlier = state.runners.get(line.uuid);
      const tracking = earlier?.[0]?.tracking ?? line.tracking;
      this.#expect(line.tracking === tracking, "two-trackings", `${line.uuid} is ${tracking}`);
      this.#starts(line.effective_from, earlier);
      append(state.runners, line.uuid, line);
    }
    state.enrolments.set(this.#index, body);
  }

  #key({ enrolment, jws, kid }: Body<"key">): void {
    const claim = this.#statement(jws, TYP.claim, Claim);
    const publicKey = claim && decodeBase64url(claim.payload.public_key.x);
    if (claim === undefined || publicKey === undefined) return;
    const named = claim.jws.kid === kid && thumbprint(publicKey) === kid;
    const admissible = named && admissibleKey(publicKey);
    this.#expect(admissible, "inadmissible-key", `kid ${kid}`);
    if (admissible) this.#signed(claim, publicKey);

    const state = this.#state;
    const index = BigInt(enrolment);
    const token = state.enrolments.get(index)?.token_sha256;
    this.#expect(token === claim.payload.token_sha256, "unknown-enrolment", `entry ${enrolment}`);
    this.#expect(!state.keys.has(kid), "key-in-use", `kid ${kid}`);
    const before = state.heirs.get(kid);
    if (before === undefined || before.revoked || before.enrolment !== index) {
      this.#expect(!state.claimed.has(index), "token-used", `enrolment ${enrolment}`);
      const until = state.enrolments.get(index)?.claim_until ?? "";
      this.#expect(this.#at <= until, "token-expired", `claimed until ${until}, at ${this.#at}`);
    }
    state.claimed.add(index);
    const key = { kid, publicKey, enrolment: index, index: this.#index, end: undefined };
    if (admissible && !state.keys.has(kid)) state.keys.set(kid, { ...key, revoked: false });
  }

  #keyRotated({ jws }: Body<"key_rotated">): void {
    const rotation = this.#statement(jws, TYP.rotation, Rotation);
    const successor = rotation && decodeBase64url(rotation.payload.public_key.x);
    if (rotation === undefined || successor === undefined) return;
    const { keys, heirs } = this.#state;
    const old = keys.get(rotation.jws.kid);
    this.#expect(old !== undefined, "jws-key", `kid ${rotation.jws.kid}`);
    if (old === undefined) return;
    this.#signed(rotation, old.publicKey);
    this.#expect(old.end === undefined, "key-has-ended", `kid ${old.kid}`);
    const kid = thumbprint(successor);
    this.#expect(!keys.has(kid) && !heirs.has(kid), "key-in-use", `successor ${kid}`);
    endKey(old, rotation.payload.final_counter);
    heirs.set(kid, old);
  }

  #keyRevoked({ kid, last_trusted_counter }: Body<"key_revoked">): void {
    const key = this.#state.keys.get(kid);
    this.#expect(key !== undefined, "unknown-key", `kid ${kid}`);
    if (key === undefined) return;
    const earlier = !key.revoked || key.end === undefined || BigInt(last_trusted_counter) < key.end;
    this.#expect(earlier, "key-has-ended", `kid ${kid}, at counter ${key.end}`);
    endKey(key, last_trusted_counter);
    key.revoked = true;
  }

  #rateCard({ body, index }: EntryOf<"rate_card">): void {
    for (const [name, text] of Object.entries(body.runner_factors)) {
      this.#expect(readFraction(text) !== undefined, "invalid-factor", `${name}: ${text}`);
    }
    for (const [name, text] of Object.entries(body.project_factors)) {
      const valid = text === "monthly_minutes/300000" || readFraction(text) !== undefined;
      this.#expect(valid, "invalid-factor", `${name}: ${text}`);
    }
    const { cards, log } = this.#state;
    const discounts = log.platform === "dotcom" && body.tracking === "hosted";
    const none = Object.keys(body.project_factors).length === 0;
    const detail = `${log.platform}, ${body.tracking}`;
    this.#expect(discounts || none, "project-factors-not-applicable", detail);
    this.#starts(body.effective_from, cards.get(body.tracking));
    append(cards, body.tracking, { ...body, index });
  }

  #projectClass(body: Body<"project_class">): void {
    const { classes } = this.#state;
    this.#starts(body.effective_from, classes.get(body.project_id));
    append(classes, body.project_id, body);
  }

  #quota({ body, index }: EntryOf<"quota">): void {
    const { limits } = this.#state;
    const earlier = limits.get(body.namespace_id) ?? [];
    const newest = earlier.filter((limit) => limit.source === body.source).at(-1);
    const newer = BigInt(body.source_version) > BigInt(newest?.source_version ?? -1);
    this.#expect(newer, "stale-source-version", `${body.source} ${body.source_version}`);
    this.#expect(body.cap === "" || body.beyond === "bill", "cap-without-bill", `cap ${body.cap}`);
    this.#starts(body.effective_from, earlier);
    append(limits, body.namespace_id, { ...body, index });
  }

  #pack(body: Body<"pack">): void {
    const { expires_in, namespace_id, pack_id, purchased_in, source, source_version } = body;
    this.#expect(purchased_in <= expires_in, "pack-months", `${purchased_in} to ${expires_in}`);
    const { packs } = this.#state;
    const name = JSON.stringify([source, pack_id]);
    const before = packs.get(name) ?? { ...body, source_version: -1 };
    const newer = BigInt(source_version) > BigInt(before.source_version);
    this.#expect(newer, "stale-source-version", `${source} ${source_version} of ${pack_id}`);
    const same = before.namespace_id === namespace_id && before.purchased_in === purchased_in;
    this.#expect(same, "another-pack", `${pack_id} in ${namespace_id}, bought in ${purchased_in}`);
    packs.set(name, body);
  }

  #service(body: Body<"service">): void {
    const before = this.#state.service;
    const { schema_sha256, version } = body;
    const again = version === before?.version && schema_sha256 === before.schema_sha256;
    const older = before !== undefined && isOlder(version, before.version);
    const detail = `${version} after ${before?.version ?? "none"}`;
    this.#expect(!again && !older, "service-order", detail);
    this.#state.service = body;
  }

  #monthClosing({ body, index }: EntryOf<"month_closing">): void {
    const { closings } = this.#state;
    const last = closings.at(-1)?.month;
    const follows = last === undefined || body.month === monthAfter(last);
    const over = this.#at >= monthAfter(body.month);
    this.#expect(follows && over, "months-in-order", `${body.month} after ${last ?? "none"}`);
    closings.push({ index, month: body.month });
  }

  #withdrawn({ closing }: Body<"month_closing_withdrawn">): void {
    const { closings } = this.#state;
    const last = closings.at(-1)?.index === BigInt(closing);
    this.#expect(last, "months-in-order", `entry ${closing} is not the last closing`);
    if (last) closings.pop();
  }

  #logKey({ purpose, state, vkey }: Body<"log_key">): void {
    const { logKeys, origin } = this.#state;
    const name = purpose === "checkpoint" ? origin : `${origin}/receipt`;
    const key = parseVkey(vkey);
    const detail = `${state} for ${purpose}: ${vkey}`;
    this.#expect(key?.type === "ed25519" && key.name === name, "log-key-form", detail);
    const keys = logKeys[purpose];
    // One that is retired before anybody added it is the first, and of firsts there is one.
    const meant = state === "added" || keys.has(vkey) ? vkey : FIRST_KEY;
    const before = keys.get(meant) ?? "retired";
    keys.set(meant, state).set(vkey, state);
    const left = [...keys.values()].includes("added");
    this.#expect(before !== state && left, "log-key-order", detail);
  }

  #statement<P extends { log: string }>(
    text: string,
    typ: string,
    shape: z.ZodType<P>,
  ): Statement<P> | undefined {
    const statement = readStatement(text, typ, shape);
    if (typeof statement === "string") {
      this.#expect(false, statement, `expected ${typ}`);
      return undefined;
    }
    const { log } = statement.payload;
    this.#expect(log === this.#state.id, "jws-log", `a statement for log ${log}`);
    return statement;
  }

  #signed({ jws }: Statement<unknown>, publicKey: Uint8Array): void {
    const holds = verdict(jws.signature, jws.input, publicKey, this.#verify);
    this.#expect(holds, "jws-signature", `by ${jws.kid}`);
  }
}

/** Number by number, as in 1.10.0; of versions of another form no order is known. */
function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split(".").map(Number));
  const at = a?.findIndex((number, i) => number !== b?.[i]) ?? -1;
  return Number(a?.[at]) < Number(b?.[at]);
}

/** Of several ends the lowest counts. */
function endKey(key: Key, counter: string): void {
  const end = BigInt(counter);
  if (key.end === undefined || end < key.end) key.end = end;
}
