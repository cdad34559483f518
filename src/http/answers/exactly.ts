/** Shapes that cannot drift from the types which flows answer with. */
import type { z } from "zod";

/** Interfaces, intersections and mapped types become the same type if they have the same members. */
type Plain<T> = T extends readonly (infer Item)[]
  ? Plain<Item>[]
  : T extends object
    ? { -readonly [Name in keyof T]: Plain<T[Name]> }
    : T;

/**
 * Identity, and not assignability both ways: that one lets a member pass which is optional here and
 * missing there.
 */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** The shape that it is given; where its values are not exactly those of `T`, this does not compile. */
export function exactly<T>() {
  return <S extends z.ZodType>(
    shape: S & (Same<Plain<z.infer<S>>, Plain<T>> extends true ? unknown : never),
  ): S => shape;
}
