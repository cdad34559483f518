/** What became of names. */
import { z } from "zod";
import { IntegerText, LogId } from "../../core/unit.ts";
import type { Erased } from "../../flow/names/erase.ts";
import { NamedId, type Named as Put } from "../../flow/names/put.ts";
import { exactly } from "./exactly.ts";

export const Named = exactly<Put>()(z.strictObject({ log: LogId, names: IntegerText }));

export const ErasedName = exactly<Erased>()(NamedId.extend({ log: LogId, erased: z.boolean() }));
