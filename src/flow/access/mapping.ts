/**
 * Who holds what on a log that says so itself: by its newest `role_mapping`, and not by the configuration any
 * more. Beside it, who is barred. Each process has a small copy of both.
 */
import type { JWTPayload } from "jose";
import type { MappedRole } from "../../core/control.ts";
import { canBeBound, covers, type Holding } from "./grant.ts";

/** As of a few seconds ago; another object as soon as anything in it is another. */
export interface Standing {
  /** What each log that has a mapping says, of all issuers. */
  readonly mappings: ReadonlyMap<string, readonly MappedRole[]>;
  /** What anybody of an issuer may hold: by issuer, claim and value, so that nobody reads all mappings. */
  readonly given: ReadonlyMap<string, readonly Given[]>;
  /** Of all logs that have a mapping. */
  readonly mapped: ReadonlySet<string>;
  /** Principals to the logs on which nothing holds for them any more; `""` stands for all. */
  readonly barred: ReadonlyMap<string, ReadonlySet<string>>;
}

interface Given {
  readonly log: string;
  readonly grant: MappedRole;
}

/** Whose token verified, and what the configuration gives them. */
export interface Bearer {
  readonly id: string;
  readonly issuer: string;
  readonly subject: string;
  readonly claims: JWTPayload;
  readonly configured: readonly Holding[];
  /** Of development's own issuer: the token itself bounds what its bearer may hold anywhere. */
  readonly isLocal: boolean;
}

const NOWHERE: ReadonlySet<string> = new Set();

export const NOTHING_MAPPED: Standing = standingOf(new Map(), new Map());

export function standingOf(
  mappings: ReadonlyMap<string, readonly MappedRole[]>,
  barred: ReadonlyMap<string, ReadonlySet<string>>,
): Standing {
  const given = new Map<string, Given[]>();
  for (const [log, grants] of mappings) {
    for (const grant of grants) {
      const key = keyOf(grant.issuer, grant.claim, grant.value);
      const same = given.get(key) ?? [];
      same.push({ log, grant });
      given.set(key, same);
    }
  }
  return { mappings, given, mapped: new Set(mappings.keys()), barred };
}

/** All that somebody holds anywhere; undefined for who is barred from everything. */
export function holdingsOf(bearer: Bearer, standing: Standing): readonly Holding[] | undefined {
  const { mapped, barred } = standing;
  const from = barred.get(bearer.id) ?? NOWHERE;
  if (from.has("")) return undefined;
  // Shared by everybody who is barred from nothing.
  const except = from.size === 0 ? mapped : new Set([...mapped, ...from]);
  const configured = bearer.configured.flatMap((holding): Holding[] => {
    if (holding.logs === "*") return [{ ...holding, except }];
    const logs = holding.logs.filter((log) => !except.has(log));
    return logs.length === 0 ? [] : [{ ...holding, logs }];
  });
  const own = givenTo(bearer, standing).filter(({ log }) => !from.has(log));
  return [...configured, ...own.flatMap((given) => within(bearer, given))];
}

/** RFC 7519 leaves open whether a claim is one value or a list of them. */
export function holds(claims: JWTPayload, claim: string, value: string): boolean {
  return valuesOf(claims, claim).includes(value);
}

function givenTo({ issuer, claims }: Bearer, { given }: Standing): Given[] {
  if (given.size === 0) return [];
  return Object.keys(claims).flatMap((claim) => {
    const values = new Set(valuesOf(claims, claim));
    return [...values].flatMap((value) => given.get(keyOf(issuer, claim, value)) ?? []);
  });
}

/** What the log gives; to a token that says itself where it holds, no more than both say. */
function within({ configured, isLocal }: Bearer, { log, grant }: Given): Holding[] {
  const { role, namespaces } = grant;
  // What would only look like a bound gives nothing.
  if (namespaces !== "*" && !canBeBound(role)) return [];
  if (!isLocal) return [{ role, logs: [log], namespaces }];
  return configured
    .filter((holding) => holding.role === role && covers(holding, log))
    .map((holding) => ({ role, logs: [log], namespaces: both(namespaces, holding.namespaces) }));
}

function both(a: Holding["namespaces"], b: Holding["namespaces"]): Holding["namespaces"] {
  if (a === "*") return b;
  return b === "*" ? a : a.filter((namespace) => b.includes(namespace));
}

function valuesOf(claims: JWTPayload, claim: string): string[] {
  const held = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  return (Array.isArray(held) ? held : [held]).filter((value) => typeof value === "string");
}

function keyOf(...parts: readonly [issuer: string, claim: string, value: string]): string {
  return JSON.stringify(parts);
}
