/** The files that the configuration names, read and checked. */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { ConfigError } from "./config-error.ts";
import { webAddress } from "./config-value.ts";
import { type Policy, parsePolicy, reachesQuorum, witnessId } from "./core/policy.ts";
import { LOCAL_ISSUER } from "./flow/access/configured.ts";
import { Grant } from "./flow/access/grant.ts";

/** One issuer of service tokens, as ISSUERS_FILE lists them. */
const IssuerEntry = z.strictObject({
  issuer: z
    .string()
    .min(1)
    .refine((name) => name !== LOCAL_ISSUER, "development's own issuer is none of a service's"),
  audience: z.string().min(1),
  client: z.string().min(1).exactOptional(),
  algorithms: z.array(z.enum(["EdDSA", "Ed25519", "ES256", "ES384", "RS256", "PS256"])).min(1),
  jwks: z.union([
    z.strictObject({ uri: webAddress(/^https$/) }),
    z.strictObject({ file: z.string().min(1) }),
  ]),
  grants: z.array(Grant).min(1),
});
export type IssuerEntry = z.infer<typeof IssuerEntry>;

/** @throws ConfigError when the file cannot be read or does not have the shape */
export function readIssuers(file: string): IssuerEntry[] {
  return readJson(file, z.array(IssuerEntry).min(1));
}

const WitnessUrl = webAddress(/^https?$/);

/**
 * C2SP tlog-policy. Whatever is stored of a witness is named by the id of its key, so no two may share one.
 *
 * @throws ConfigError naming the line, or the witness that cannot be asked; where too few can for a quorum
 */
export function readPolicy(file: string | undefined): Policy | undefined {
  if (file === undefined) return undefined;
  const policy = parsePolicy(readText(file));
  if ("problem" in policy) throw new ConfigError(`${file}, line ${policy.line}: ${policy.problem}`);
  const [ids, asked] = [new Set<string>(), new Set<string>()];
  for (const { name, vkey, url } of policy.witnesses) {
    if (ids.has(vkey.id))
      throw new ConfigError(`${file}: ${name} has the key id of another witness`);
    ids.add(vkey.id);
    if (url === undefined) continue;
    const { error } = WitnessUrl.safeParse(url);
    if (error !== undefined) {
      const reasons = error.issues.map(({ message }) => message).join("; ");
      throw new ConfigError(`${file}: ${name} cannot be asked where it says: ${reasons}`);
    }
    asked.add(witnessId(vkey));
  }
  // Nothing would ever be published: a cosignature comes only from whoever is asked.
  if (!reachesQuorum(policy, asked)) {
    throw new ConfigError(`${file}: the quorum needs a witness that has no URL`);
  }
  return policy;
}

/** RFC 7517 §5; what is in the keys is for jose to judge. */
const KeySet = z.object({ keys: z.array(z.record(z.string(), z.unknown())).min(1) });
export type KeySet = z.infer<typeof KeySet>;

/** Of an issuer whose keys are in a file. @throws ConfigError as `readIssuers` does */
export function readKeySet(file: string): KeySet {
  return readJson(file, KeySet);
}

/** @throws ConfigError when the file cannot be read or does not have the shape */
export function readJson<T>(file: string, shape: z.ZodType<T>): T {
  return reading(file, () => shape.parse(JSON.parse(readFileSync(file, "utf8"))));
}

/** @throws ConfigError when the file cannot be read */
export function readText(file: string): string {
  return reading(file, () => readFileSync(file, "utf8"));
}

function reading<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ConfigError(`${file}: ${error instanceof Error ? error.message : ""}`, {
      cause: error,
    });
  }
}
