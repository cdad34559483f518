/** What a namespace was told. */
import { NotifiedPage } from "../answers/notifications.ts";
import { json, type Operation } from "./operation.ts";
import { PageSearch } from "./shapes.ts";

export const NOTIFICATIONS = {
  "GET /v1/quotas/:log/:namespace/notifications": {
    summary: "Notifications of 35 days, oldest first, and how far each came",
    query: PageSearch,
    success: { 200: json(NotifiedPage) },
    problems: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;
