/** What each route takes and answers; together with the access table, all of its contract. */
import type { Route } from "./access.ts";
import { CONTROL } from "./operations/control.ts";
import { CREDIT } from "./operations/credit.ts";
import { EXPORTS } from "./operations/exports.ts";
import { FEED } from "./operations/feed.ts";
import { FINANCE } from "./operations/finance.ts";
import { GITLAB } from "./operations/gitlab.ts";
import { HOLDS } from "./operations/holds.ts";
import { LOG } from "./operations/log.ts";
import { MONTHS } from "./operations/months.ts";
import { NAMES } from "./operations/names.ts";
import { NOTIFICATIONS } from "./operations/notifications.ts";
import type { Operation } from "./operations/operation.ts";
import { OPERATOR } from "./operations/operator.ts";
import { OVERSIGHT } from "./operations/oversight.ts";
import { PROCESS } from "./operations/process.ts";
import { QUOTA } from "./operations/quota.ts";
import { READER } from "./operations/reader.ts";
import { RECONCILIATION } from "./operations/reconciliation.ts";
import { RUNNER } from "./operations/runner.ts";

export const OPERATIONS: Readonly<Record<Route, Operation>> = {
  ...PROCESS,
  ...RUNNER,
  ...OPERATOR,
  ...LOG,
  ...FINANCE,
  ...CREDIT,
  ...CONTROL,
  ...MONTHS,
  ...EXPORTS,
  ...FEED,
  ...NAMES,
  ...READER,
  ...GITLAB,
  ...HOLDS,
  ...QUOTA,
  ...NOTIFICATIONS,
  ...OVERSIGHT,
  ...RECONCILIATION,
};
