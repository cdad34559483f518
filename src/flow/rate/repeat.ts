/** An event that its source sends again. */

/** Whether what stands has each member that is said, and as it is said: what is left out was a default. */
export function repeats<T extends object>(stands: T, said: Partial<T>): boolean {
  return (Object.keys(said) as (keyof T)[]).every((name) => said[name] === stands[name]);
}
