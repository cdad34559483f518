-- migrate:up
-- The log. Entries are written once: no role but the owner holds UPDATE, DELETE or TRUNCATE, and
-- triggers refuse even the owner, also under session_replication_role = replica.

create table entries (
  log text not null,
  index bigint not null,
  kind text not null,
  at timestamptz(3) not null,
  prev bytea not null,
  leaf bytea not null,
  bytes bytea not null, -- what was hashed, to the byte
  -- Read from the bytes once, so that rollups need not parse them; of kind usage only.
  tracking text,
  job_id bigint,
  project_id bigint,
  namespace_id bigint,
  runner_uuid text,
  runner_id bigint,
  machine_type text,
  duration_ms bigint,
  compute_ms numeric(46, 6),
  not_billable text,
  usage_month date,
  billing_month date,
  finished_at timestamptz(3),
  constraint entries_pkey primary key (log, index),
  constraint entries_log_form check (log ~ '^[0-9a-f]{32}$'),
  constraint entries_index_from_zero check (index >= 0),
  constraint entries_hashes check (octet_length(prev) = 32 and octet_length(leaf) = 32),
  constraint entries_size check (octet_length(bytes) between 1 and 65535),
  constraint entries_usage_typed check (
    (kind = 'usage') = (
      num_nonnulls(
        tracking, job_id, project_id, namespace_id, runner_uuid, runner_id, machine_type,
        duration_ms, compute_ms, not_billable, usage_month, billing_month, finished_at
      ) = 13
    )
  ),
  constraint entries_other_untyped check (
    kind = 'usage'
    or num_nulls(
      tracking, job_id, project_id, namespace_id, runner_uuid, runner_id, machine_type,
      duration_ms, compute_ms, not_billable, usage_month, billing_month, finished_at
    ) = 13
  )
);

-- Control entries are read whole by every process, conflicts and holds are listed.
create index entries_by_kind
  on entries (log, kind, index)
  where kind not in ('usage', 'disposition', 'attestation');

-- The one row that a log's writers queue at. `control_index` is −1 while there is none.
create table heads (
  log text not null,
  size bigint not null,
  leaf bytea not null,
  at timestamptz(3) not null,
  control_index bigint not null,
  constraint heads_pkey primary key (log),
  constraint heads_size_positive check (size > 0),
  constraint heads_control_below_size check (control_index between -1 and size - 1)
);

-- One usage per (log, tracking, job), for ever.
create table jobs (
  log text not null,
  tracking text not null,
  job_id bigint not null,
  index bigint not null,
  fact bytea not null,
  constraint jobs_pkey primary key (log, tracking, job_id)
);

-- One answer per signed report, for ever. `index` is the entry that stands for it (null: none does);
-- `recorded` the entry that accounts for its counter.
create table reports (
  log text not null,
  kid text not null,
  counter bigint not null,
  digest bytea not null,
  index bigint,
  code text not null,
  recorded bigint not null,
  constraint reports_pkey primary key (log, kid, counter, digest)
);

-- Public keys by thumbprint, from the claims on the logs.
create table keys (
  kid text not null,
  log text not null,
  index bigint not null,
  public_key bytea not null,
  constraint keys_pkey primary key (kid, log)
);

-- What proved nothing: digest and code, bounded, outside the log.
create table refusals (
  digest bytea not null,
  code text not null,
  first_at timestamptz(3) not null,
  last_at timestamptz(3) not null,
  times bigint not null,
  constraint refusals_pkey primary key (digest)
);
create index refusals_by_age on refusals (last_at);

create function refuse_change() returns trigger
language plpgsql as $fn$
begin
  -- No look at OLD: the same function serves TRUNCATE, which has none.
  raise exception '% on % is refused: the log is append-only; correct by a new entry',
    tg_op, tg_table_name
    using errcode = 'restrict_violation';
end
$fn$;

create trigger entries_append_only
  before update or delete or truncate on entries
  for each statement execute function refuse_change();
alter table entries enable always trigger entries_append_only;

-- Not TRUNCATE, here and below: these three say nothing that the entries do not, and an owner who
-- finds one of them altered empties it and lets `rebuild` write it anew. The service may not anyway.
create trigger jobs_append_only
  before update or delete on jobs
  for each statement execute function refuse_change();
alter table jobs enable always trigger jobs_append_only;

create trigger reports_append_only
  before update or delete on reports
  for each statement execute function refuse_change();
alter table reports enable always trigger reports_append_only;

create trigger keys_append_only
  before update or delete on keys
  for each statement execute function refuse_change();
alter table keys enable always trigger keys_append_only;

grant select, insert on entries, jobs, reports, keys to minutebook_writer;
grant select, insert, update on heads to minutebook_writer;
grant select, insert, update, delete on refusals to minutebook_writer;
grant select on entries, heads, jobs, reports, keys, refusals to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
