/** Usage-log lines as gitlab-runner writes them, with whatever a test wants different. */

export const UNIQUE_ID = "1298b121-eb2c-5d98-af71-ebcba276c7e9";
export const RUNNER = "a09f76b5-a170-4338-b926-3059f28c105d";

export interface Different {
  uuid?: string;
  id?: string;
  duration?: string;
  uniqueId?: string;
  runner?: string;
  startedAt?: string;
  finishedAt?: string;
  status?: string;
  reason?: string;
  executor?: string;
  /** Written as it stands at the end of `job`, after a comma. */
  more?: string;
}

let made = 0;

/** One line without its newline. Each has its own record and job id, unless they are given. */
export function usageLine(different: Different = {}): string {
  made += 1;
  const {
    uuid = `01a05a74-fbe9-758c-b036-${String(made).padStart(12, "0")}`,
    id = String(9_000_000_000 + made),
    duration = "27.013829352",
    uniqueId = UNIQUE_ID,
    runner = RUNNER,
    startedAt = "2026-09-01T00:52:54.019737827Z",
    finishedAt = "2026-09-01T00:53:21.033567179Z",
    status = "success",
    reason = "",
    executor = "docker+machine",
    more = "",
  } = different;
  return (
    `{"uuid":${JSON.stringify(uuid)},"timestamp":"2026-09-01T00:53:31.241363626Z",` +
    `"runner":{"uuid":"${runner}","id":"token","name":"one \\u0026 two","system_id":"s_1818892f902b","executor":${JSON.stringify(executor)}},` +
    `"job":{"id":${id},"pipeline_id":3000000228,"ref":"main","url":"https://gitlab.example/x","duration_seconds":${duration},` +
    `"status":${JSON.stringify(status)},"failure_reason":${JSON.stringify(reason)},"started_at":"${startedAt}","finished_at":"${finishedAt}",` +
    `"project":{"id":50010,"name":"quo\\"te","full_path":"group/p"},"namespace":{"id":1501},"root_namespace":{"id":1001},` +
    `"organization":{"id":1},"instance":{"id":"6513270e","unique_id":"${uniqueId}"},"user":{"id":683}${more}},"labels":{"machine_type":"small"}}`
  );
}
