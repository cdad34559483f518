/** What somebody may do: roles on logs, and for viewers on namespaces of them. */
import { z } from "zod";
import { ROLES } from "../../core/control.ts";
import { goesByName } from "../../core/id-token.ts";
import { IntegerText, LogId } from "../../core/unit.ts";

export const Role = z.enum(ROLES);
export type Role = z.infer<typeof Role>;

const Logs = z.union([z.literal("*"), z.array(LogId)]);
const Namespaces = z.union([z.literal("*"), z.array(IntegerText)]);

/** Any other role sees all of its logs, so that a bound on it would only look like one. */
export function canBeBound(role: Role): boolean {
  return role === "viewer";
}

const Bare = z.strictObject({ role: Role, logs: Logs, namespaces: Namespaces });

const isKept = ({ role, namespaces }: z.infer<typeof Bare>): boolean =>
  namespaces === "*" || canBeBound(role);

/** Nothing of it may be left out: what is silent must not be everything. */
export const Scope = Bare.refine(isKept);
export type Scope = z.infer<typeof Scope>;

/** As configured: a claim's value gives a role on some logs, and for viewers on some namespaces of them. */
export const Grant = Bare.extend({ claim: z.string().min(1), value: z.string() })
  .refine(isKept, {
    path: ["namespaces"],
    error: "only a viewer can be bound to namespaces",
  })
  // New logs begin with it.
  .refine((grant) => !goesByName(grant), {
    path: ["claim"],
    error: "a role goes by no name and no address of a person",
  });
export type Grant = z.infer<typeof Grant>;

/** A role that somebody holds. */
export interface Holding {
  role: Role;
  logs: "*" | readonly string[];
  /** Of all logs, those on which it does not hold: they say themselves who may do what. */
  except?: ReadonlySet<string>;
  namespaces: "*" | readonly string[];
}

/** Who asks. `id` is opaque: no name of a person reaches a signed or hashed byte. */
export interface Principal {
  id: string;
  /** Of the token. */
  issuer: string;
  subject: string;
  grants: readonly Holding[];
}

export function covers({ logs, except }: Holding, log: string): boolean {
  return logs === "*" ? except?.has(log) !== true : logs.includes(log);
}
