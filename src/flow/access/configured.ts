/** What the configuration gives on every log, as a log says it that begins with it. */
import { type MappedRole, ROLES } from "../../core/control.ts";
import type { Issuer } from "../authenticate.ts";

/** The name of development's own issuer, which no other may have. */
export const LOCAL_ISSUER = "minutebook-local";
/** In which development's tokens name their roles again: as others name groups. */
const LOCAL_CLAIM = "roles";

/** Grants on single logs are not among them: a new log is none of these. */
export function configuredRoles(issuers: readonly Issuer[]): MappedRole[] {
  return issuers.flatMap(({ issuer, grants }) => {
    if (grants === "claims") {
      return ROLES.map((role) => {
        return { claim: LOCAL_CLAIM, issuer, namespaces: "*" as const, role, value: role };
      });
    }
    return grants
      .filter(({ logs }) => logs === "*")
      .map(({ claim, namespaces, role, value }) => ({ claim, issuer, namespaces, role, value }));
  });
}
