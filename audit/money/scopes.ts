/** That of a namespace's month, and of each project's that was adjusted by itself, never less than nothing is left. */
import type { Findings } from "../finding.ts";

interface Scope {
  charged: bigint;
  /** Charged and adjusted, together. */
  left: bigint;
}

export interface ScopeLine {
  index: bigint;
  usage_month: string;
  project: bigint | undefined;
  amount: bigint;
}

/** Of one namespace. What is told comes in the order of the log. */
export class Scopes {
  readonly #findings: Findings;
  readonly #projects: boolean;
  readonly #scopes = new Map<string, Scope>();
  /** The entry whose lines come, and the scopes that they have touched: judged when all are there. */
  #index = -1n;
  readonly #touched = new Set<string>();

  constructor(findings: Findings, projects: boolean) {
    this.#findings = findings;
    this.#projects = projects;
  }

  charge(usage_month: string, project: bigint | undefined, amount: bigint): void {
    for (const name of this.#names(usage_month, project)) {
      const scope = this.#scope(name);
      scope.charged += amount;
      scope.left += amount;
    }
  }

  adjust({ amount, index, project, usage_month }: ScopeLine): void {
    if (index !== this.#index) this.end();
    this.#index = index;
    for (const name of this.#names(usage_month, project)) {
      this.#scope(name).left += amount;
      this.#touched.add(name);
    }
  }

  end(): void {
    const where = { index: this.#index };
    for (const name of this.#touched) {
      const { charged, left } = this.#scope(name);
      if (charged === 0n)
        this.#findings.add("adjusted-usage", where, `nothing was billed: ${name}`);
      else if (left < 0n) this.#findings.add("exceeds-original", where, `of ${name}`);
    }
    this.#touched.clear();
  }

  #names(usage_month: string, project: bigint | undefined): string[] {
    if (!this.#projects || project === undefined) return [usage_month];
    return [usage_month, `${usage_month}, project ${project}`];
  }

  #scope(name: string): Scope {
    const scope = this.#scopes.get(name) ?? { charged: 0n, left: 0n };
    this.#scopes.set(name, scope);
    return scope;
  }
}
