/** What the operator set wrongly, in one line each. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly code = "invalid-configuration";
}
