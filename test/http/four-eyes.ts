/** A service with a log under dual control: somebody who proposes at it, and somebody who approves. */
import { expect } from "vitest";
import type { Service } from "../../src/command/service.ts";
import type { Action, MappedRole } from "../../src/core/control.ts";
import type { EnrolledRunner, Entry } from "../../src/core/entry.ts";
import { instantText } from "../../src/core/unit.ts";
import { tokenDigest } from "../../src/flow/key/enrol.ts";
import { RUNNER } from "../core/history.ts";
import { claimOf, entriesOf, ofKind } from "../flow/door.ts";
import { type Answered, ask, everybody, type House, openHouse } from "./house.ts";
import { IdIssuer, type Made } from "./id-issuer.ts";

export const BILLING_FROM = "2026-01-01T00:00:00.000Z";

/** An open proposal. */
export interface Opened {
  index: string;
  nonce: string;
}

/** Of an approval: another token than a good one, or another bearer. */
export interface Approving extends Partial<Made> {
  subject?: string;
  issuer?: IdIssuer;
  token?: string;
  at?: Pick<Service, "url">;
}

export class FourEyes {
  readonly house: House;
  readonly issuer: IdIssuer;
  log = "";
  /** Bearer tokens of persons 1 and 2. */
  proposer = "";
  approver = "";
  #version = 0;

  private constructor(house: House, issuer: IdIssuer) {
    this.house = house;
    this.issuer = issuer;
  }

  static async open(
    issuer = new IdIssuer("https://id.example", "EdDSA"),
    others: readonly IdIssuer[] = [],
  ): Promise<FourEyes> {
    const issuers = [issuer, ...others].map((each) => each.configured);
    const desk = new FourEyes(await openHouse({}, undefined, issuers), issuer);
    desk.log = await desk.newLog("dual");
    await desk.signIn();
    return desk;
  }

  async signIn(): Promise<void> {
    this.proposer = await this.issuer.bearer("1", ["finance"]);
    this.approver = await this.issuer.bearer("2", ["approver"]);
  }

  async newLog(unique_id: string): Promise<string> {
    const json = { unique_id, platform: "dotcom", control: "dual", billing_from: BILLING_FROM };
    const made = await ask(this.house, "POST /v1/logs", { token: await everybody(), json });
    return String(made.json["log"]);
  }

  /** Another one each time, and none is stale. */
  limit(change: object = {}): Record<string, string> {
    this.#version += 1;
    const version = String(this.#version);
    return {
      ...{ namespace_id: "7", monthly_minutes: version, beyond: "stop", cap: "" },
      ...{ grace_minutes: "0", source: "by hand", source_version: version, ...change },
    };
  }

  async propose(change: object = {}, token = this.proposer): Promise<Answered> {
    const asked = { log: this.log, action: "quota", reason: "contract", ticket: "OPS-1" };
    const json = { content: this.limit(), ...asked, ...change };
    return await ask(this.house, "POST /v1/proposals", { token, json });
  }

  /** One that is open. */
  async opened(change: object = {}, token = this.proposer): Promise<Opened> {
    const { json, status, text } = await this.propose(change, token);
    expect([status, text]).toEqual([201, expect.any(String)]);
    return { index: String(json["index"]), nonce: String(json["nonce"]) };
  }

  path({ index }: Pick<Opened, "index">): string {
    return `/v1/proposals/${this.log}/${index}`;
  }

  async idToken({ nonce }: Pick<Opened, "nonce">, approving: Approving = {}): Promise<string> {
    const { issuer = this.issuer, subject = "2", token: _, at: __, ...made } = approving;
    return await issuer.idToken(subject, { nonce, now: this.house.clock.time, ...made });
  }

  async approve(opened: Opened, approving: Approving = {}): Promise<Answered> {
    const { token = this.approver, at = this.house } = approving;
    const json = { id_token: await this.idToken(opened, approving) };
    return await ask(at, `POST ${this.path(opened)}/approval`, { token, json });
  }

  async show(opened: Pick<Opened, "index">): Promise<Answered> {
    return await ask(this.house, `GET ${this.path(opened)}`, { token: this.approver });
  }

  async state(opened: Opened): Promise<unknown> {
    return (await this.show(opened)).json["state"];
  }

  async entries(): Promise<Entry[]> {
    return await entriesOf(this.house.database.reader, this.log);
  }

  async grants(): Promise<MappedRole[]> {
    return ofKind(await this.entries(), "role_mapping").at(-1)?.body.grants ?? [];
  }

  /** What both decide, one after the other. */
  async decided(action: Action, content: object): Promise<Answered> {
    const answer = await this.approve(await this.opened({ action, content }));
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
    return answer;
  }

  /** The key of this seed, for the usual runner or another line. */
  async agent(seed: number, line: Partial<EnrolledRunner> = {}): Promise<void> {
    const secret = `secret ${seed}`;
    const claim_until = instantText(this.house.clock.time + 3_600_000);
    const runners = [{ ...RUNNER, ...line }];
    const named = { claim_until, namespaces: [], runners, token_sha256: tokenDigest(secret) };
    await this.decided("enrolment", named);
    const json = { token: secret, claim: claimOf(seed, this.log, secret) };
    const claimed = await ask(this.house, "POST /v1/enrolments/claim", { json });
    expect([claimed.status, claimed.text]).toEqual([201, expect.any(String)]);
  }

  /** Which may change limits without a person, from here on. */
  async systems(sources: string[]): Promise<void> {
    const content = { billing_from: BILLING_FROM, control: "dual", sources };
    const answer = await this.approve(await this.opened({ action: "mode", content }));
    expect(answer.status).toBe(201);
  }
}

export const coded = ({ status, json }: Answered): unknown[] => [status, json["code"]];
