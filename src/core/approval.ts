/**
 * What two persons decide (DESIGN §12): what a proposal asks for, which entry it is that an approval let
 * in, and which changes need none. What the approver's ID token must say is in `id-token.ts`.
 */
import { z } from "zod";
import { type Action, CONTENT_CHARS_MAX, type MappedRole } from "./control.ts";
import { justAfter } from "./effective.ts";
import { BODY, type Body, type Kind } from "./entry.ts";
import type { Hash } from "./hash.ts";
import { canonical, type Json, parseCanonical } from "./json.ts";
import type { Prefix } from "./prefix.ts";
import { encodeBase64url, encodeUtf8, utf8Length } from "./text.ts";

/** Who somebody is to an issuer of tokens; `subject` is opaque there too. */
export interface Person {
  readonly issuer: string;
  readonly subject: string;
}

export function isSamePerson(a: Person, b: Person): boolean {
  return a.issuer === b.issuer && a.subject === b.subject;
}

/** What the approver's ID token carries as its nonce: the leaf hash of the proposal's entry. */
export function nonceOf(leaf: Hash): string {
  return encodeBase64url(leaf);
}

/** Members that a proposal leaves to the service. */
const UNASKED = ["approval", "by", "salt"] as const;

/** A body as a proposal has it. Without `effective_from`, where there is one: at once. */
export type Content = Readonly<Record<string, Json>>;

const ASKED = new Map<Action, z.ZodType>();

/** The shape of an action's content. */
export function contentShape(action: Action): z.ZodType<Content> {
  const known = ASKED.get(action);
  if (known !== undefined) return known as z.ZodType<Content>;
  const members: Record<string, z.ZodType> = { ...BODY[action].shape };
  for (const name of UNASKED) delete members[name];
  const { effective_from } = members;
  if (effective_from !== undefined) members["effective_from"] = z.exactOptional(effective_from);
  const shape = z.strictObject(members);
  ASKED.set(action, shape);
  return shape as unknown as z.ZodType<Content>;
}

/** Undefined for what is not the canonical JSON of an object. */
export function parseContent(text: string): Content | undefined {
  const value = parseCanonical(encodeUtf8(text));
  return typeof value === "object" && !Array.isArray(value) ? value : undefined;
}

/** Whether a proposal has room for it, as the text that it would be there, beside an effect of this size. */
export function isSayable(content: Content): boolean {
  return utf8Length(canonical(canonical(content))) <= CONTENT_CHARS_MAX;
}

/** The content of a proposal that stands. @throws Error for one that was never let in */
export function readContent({ content }: Pick<Body<"proposal">, "content">): Content {
  const read = parseContent(content);
  if (read === undefined) throw new Error("approval: no content");
  return read;
}

/**
 * The body that a content asks for, but for what the service adds.
 * @param first whether it is the first of its key, which alone may start when it is written
 */
export function bodyOf(action: Action, content: Content, at: string, first: boolean): Content {
  if (!("effective_from" in BODY[action].shape) || "effective_from" in content) return content;
  return { ...content, effective_from: first ? at : justAfter(at) };
}

/** Whether an entry that is written at `at` is what the proposal asked for, and in its proposer's name. */
export function matches(
  proposal: Body<"proposal">,
  kind: Kind,
  body: Body<Kind>,
  at: string,
): boolean {
  if (proposal.action !== kind) return false;
  const { approval: _, by, salt: __, ...written } = body as Content;
  if (by !== proposal.by) return false;
  const { effective_from: from, ...rest } = written;
  const atOnce = from === at || from === justAfter(at);
  const asked = "effective_from" in readContent(proposal) || !atOnce ? written : rest;
  return canonical(asked) === proposal.content;
}

/** Whether anybody of whom the mapping knows could approve. */
export function hasApprover(grants: readonly MappedRole[]): boolean {
  return grants.some(({ role }) => role === "approver");
}

/**
 * Whether, under dual control, an entry is let in without an approval. The first role mapping of a log
 * is too: whether it is the first those say who see the entries before (flow/control/decided.ts).
 */
export function needsNone(prefix: Prefix, kind: Kind, body: Body<Kind>): boolean {
  switch (kind) {
    case "quota":
    case "pack":
    case "project_class":
    case "account":
      return "source" in body && prefix.sources.includes(body.source);
    case "break_resolved":
      return "outcome" in body && body.outcome === "healed";
    case "role_mapping":
      return true;
    default:
      return false;
  }
}

/**
 * Whether an enrolment needs an approval, directly behind which it then stands: the vendor's runners are
 * billed, and what a machine is decides at which rate. Where the vendor runs the instance, its instance
 * runners are the vendor's, also those that are said to be somebody's own: as such they would never be billed.
 */
export function enrolsForMoney(prefix: Prefix, { runners }: Pick<Body<"enrolment">, "runners">) {
  if (prefix.control === "single") return false;
  const isCustomers = prefix.log.platform === "self_managed";
  return runners.some(({ machine_type, runner_type, tracking, uuid }) => {
    const isVendors = tracking === "hosted" || (runner_type === "instance" && !isCustomers);
    const known = prefix.newestLine(uuid);
    return isVendors || (known !== undefined && known.machine_type !== machine_type);
  });
}
