/** The entry that a proposal asks for: its body made whole, and written. */
import { bodyOf, type Content, contentShape } from "../../core/approval.ts";
import type { Action } from "../../core/control.ts";
import { BODY, type Body } from "../../core/entry.ts";
import { misfits, REPORTING } from "../../core/misfit.ts";
import { Problem } from "../../core/problem.ts";
import { putReleased } from "../hold/release.ts";
import type { Put, Receipt } from "../log/commit-entry.ts";
import { type Deciding, isFirst, RULES_BESIDE } from "./rules.ts";

/** What the service adds to what was asked for. */
export interface Sealed {
  /** Index of the approval; `""` where none is needed. */
  approval: string;
  by: string;
  salt: string;
}

/** @throws Problem `invalid-request`, naming the members that do not fit, and how */
export function readAsked(action: Action, asked: unknown): Content {
  const { data, error } = contentShape(action).safeParse(asked, REPORTING);
  if (data !== undefined) return data;
  throw new Problem("invalid-request", misfits(error, "content"));
}

/** @throws Problem `invalid-request` */
export async function assemble<A extends Action>(
  deciding: Deciding,
  action: A,
  content: Content,
  { approval, by, salt }: Sealed,
): Promise<Body<A>> {
  const first = await isFirst(deciding, action, content);
  const whole = bodyOf(action, content, deciding.at, first);
  const named = "approval" in BODY[action].shape ? { approval } : {};
  const { data, error } = BODY[action].safeParse({ ...whole, ...named, by, salt });
  if (error !== undefined) throw new Problem("invalid-request", { kind: action });
  return data as Body<A>;
}

/** @throws Problem of the rule that an entry breaks */
export async function assertAllowed<A extends Action>(
  deciding: Deciding,
  action: A,
  body: Body<A>,
): Promise<void> {
  await RULES_BESIDE[action]?.(deciding, body);
}

/** And what stands right behind it. @throws Problem of whatever refuses the entry */
export async function write<A extends Action>(
  put: Put,
  deciding: Deciding,
  action: A,
  { content, sealed }: { content: Content; sealed: Sealed },
): Promise<Receipt> {
  const body = await assemble(deciding, action, content, sealed);
  await assertAllowed(deciding, action, body);
  const receipt = await put(action, body);
  await BEHIND[action]?.(put, deciding, body);
  return receipt;
}

type Behind<A extends Action> = (put: Put, deciding: Deciding, body: Body<A>) => Promise<void>;

const BEHIND: { readonly [A in Action]?: Behind<A> } = { hold_resolved: putReleased };
