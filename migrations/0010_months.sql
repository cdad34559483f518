-- migrate:up
-- Adjustments in all figures, and closed months as rows written once. Of an adjustment that names a usage
-- the bucket is that usage's, in the month that it is posted to; of one that names a namespace's month it
-- is of no project and no runner (0, and no text).
alter table usage_buckets
  add column adjustment_compute_ms numeric(46, 6) not null default 0.000000;

-- A service from before this one would fold entries without their adjustments, and nobody would fold them
-- again. It names the key by its name of before, so that its fold fails, be there anything to fold or not.
alter table usage_buckets
  rename constraint usage_buckets_pkey to usage_buckets_of_charges;

-- Months that are no longer read from buckets: written with their rows, by `closeMonth` and `rebuild`.
create table closed_months (
  log text not null,
  month date not null,
  size bigint not null, -- the cut-off: no entry from there on is posted to the month
  constraint closed_months_pkey primary key (log, month)
);

-- As in 0003, but for adjustments and closed months. Figures as GitLab shows them are of the net, half away
-- from zero, as core/charge has it.
create materialized view new_namespace_monthly_usages as
select
  log,
  tracking,
  namespace_id,
  billing_month as date,
  usage_month,
  div(net + 300 * sign(net), 600) * 0.01 as amount_used,
  div(duration_ms, 1000)::bigint as shared_runners_duration,
  jobs,
  duration_ms,
  gross as gross_compute_ms,
  adjustment::numeric(46, 6) as adjustment_compute_ms,
  net as net_compute_ms,
  billable + adjustment as billable_compute_ms,
  last_index
from (
  select
    log,
    tracking,
    namespace_id,
    billing_month,
    usage_month,
    sum(jobs)::bigint as jobs,
    sum(duration_ms) as duration_ms,
    sum(compute_ms) as gross,
    sum(adjustment_compute_ms) as adjustment,
    sum(compute_ms) + sum(adjustment_compute_ms) as net,
    coalesce(sum(compute_ms) filter (where not_billable = ''), 0.000000) as billable,
    max(last_index) as last_index
  from usage_buckets as bucket
  where not exists (
    select
    from closed_months
    where closed_months.log = bucket.log and month = billing_month
  )
  group by log, tracking, namespace_id, billing_month, usage_month
) as summed
with data;

create materialized view new_project_monthly_usages as
select
  log,
  tracking,
  project_id,
  namespace_id,
  billing_month as date,
  usage_month,
  div(net + 300 * sign(net), 600) * 0.01 as amount_used,
  div(duration_ms, 1000)::bigint as shared_runners_duration,
  jobs,
  duration_ms,
  gross as gross_compute_ms,
  adjustment::numeric(46, 6) as adjustment_compute_ms,
  net as net_compute_ms,
  billable + adjustment as billable_compute_ms,
  last_index
from (
  select
    log,
    tracking,
    project_id,
    namespace_id,
    billing_month,
    usage_month,
    sum(jobs)::bigint as jobs,
    sum(duration_ms) as duration_ms,
    sum(compute_ms) as gross,
    sum(adjustment_compute_ms) as adjustment,
    sum(compute_ms) + sum(adjustment_compute_ms) as net,
    coalesce(sum(compute_ms) filter (where not_billable = ''), 0.000000) as billable,
    max(last_index) as last_index
  from usage_buckets as bucket
  where not exists (
    select
    from closed_months
    where closed_months.log = bucket.log and month = billing_month
  )
  group by log, tracking, project_id, namespace_id, billing_month, usage_month
) as summed
with data;

create materialized view new_gitlab_hosted_runner_monthly_usages as
select
  log,
  tracking,
  runner_id,
  div(duration_ms, 1000)::bigint as runner_duration_seconds,
  project_id,
  namespace_id as root_namespace_id,
  billing_month,
  div(net + 3 * sign(net), 6) * 0.0001 as compute_minutes_used,
  usage_month,
  jobs,
  duration_ms,
  gross as gross_compute_ms,
  adjustment::numeric(46, 6) as adjustment_compute_ms,
  net as net_compute_ms,
  billable + adjustment as billable_compute_ms,
  last_index
from (
  select
    log,
    tracking,
    runner_id,
    project_id,
    namespace_id,
    billing_month,
    usage_month,
    sum(jobs)::bigint as jobs,
    sum(duration_ms) as duration_ms,
    sum(compute_ms) as gross,
    sum(adjustment_compute_ms) as adjustment,
    sum(compute_ms) + sum(adjustment_compute_ms) as net,
    coalesce(sum(compute_ms) filter (where not_billable = ''), 0.000000) as billable,
    max(last_index) as last_index
  from usage_buckets as bucket
  where tracking = 'hosted'
    and not exists (
      select
      from closed_months
      where closed_months.log = bucket.log and month = billing_month
    )
  group by log, tracking, runner_id, project_id, namespace_id, billing_month, usage_month
) as summed
with data;

create table closed_namespace_monthly_usages as
table open_namespace_monthly_usages with no data;
alter table closed_namespace_monthly_usages
  add constraint closed_namespace_monthly_usages_pkey
    primary key (log, date, tracking, namespace_id, usage_month);
create index closed_namespace_monthly_usages_by_namespace
  on closed_namespace_monthly_usages (log, namespace_id);

create table closed_project_monthly_usages as
table open_project_monthly_usages with no data;
alter table closed_project_monthly_usages
  add constraint closed_project_monthly_usages_pkey
    primary key (log, date, tracking, namespace_id, project_id, usage_month);
create index closed_project_monthly_usages_by_namespace
  on closed_project_monthly_usages (log, namespace_id, usage_month);

create table closed_gitlab_hosted_runner_monthly_usages as
table open_gitlab_hosted_runner_monthly_usages with no data;
alter table closed_gitlab_hosted_runner_monthly_usages
  add constraint closed_gitlab_hosted_runner_monthly_usages_pkey
    primary key (log, billing_month, runner_id, root_namespace_id, project_id, usage_month);

-- The public names keep their columns, and whatever stands on them.
create or replace view ci_namespace_monthly_usages as
select * from new_namespace_monthly_usages
union all
select * from closed_namespace_monthly_usages;
create or replace view ci_project_monthly_usages as
select * from new_project_monthly_usages
union all
select * from closed_project_monthly_usages;
create or replace view ci_gitlab_hosted_runner_monthly_usages as
select * from new_gitlab_hosted_runner_monthly_usages
union all
select * from closed_gitlab_hosted_runner_monthly_usages;

drop materialized view
  open_namespace_monthly_usages, open_project_monthly_usages, open_gitlab_hosted_runner_monthly_usages;
alter materialized view new_namespace_monthly_usages rename to open_namespace_monthly_usages;
alter materialized view new_project_monthly_usages rename to open_project_monthly_usages;
alter materialized view new_gitlab_hosted_runner_monthly_usages
  rename to open_gitlab_hosted_runner_monthly_usages;

create unique index open_namespace_monthly_usages_key
  on open_namespace_monthly_usages (log, date, tracking, namespace_id, usage_month);
create index open_namespace_monthly_usages_by_namespace
  on open_namespace_monthly_usages (log, namespace_id);
create unique index open_project_monthly_usages_key
  on open_project_monthly_usages (log, date, tracking, namespace_id, project_id, usage_month);
create index open_project_monthly_usages_by_namespace
  on open_project_monthly_usages (log, namespace_id, usage_month);
create unique index open_gitlab_hosted_runner_monthly_usages_key
  on open_gitlab_hosted_runner_monthly_usages
    (log, billing_month, runner_id, root_namespace_id, project_id, usage_month);

do $do$
declare
  name text;
begin
  foreach name in array array[
    'closed_months', 'closed_namespace_monthly_usages', 'closed_project_monthly_usages',
    'closed_gitlab_hosted_runner_monthly_usages'
  ] loop
    execute format(
      'create trigger %I before update or delete on %I for each statement execute function refuse_change()',
      name || '_append_only', name
    );
    execute format('alter table %I enable always trigger %I', name, name || '_append_only');
    execute format('grant select, insert on %I to minutebook_writer', name);
    execute format('grant select on %I to minutebook_reader, minutebook_auditor', name);
  end loop;
end
$do$;

grant select, maintain
  on open_namespace_monthly_usages, open_project_monthly_usages,
    open_gitlab_hosted_runner_monthly_usages
  to minutebook_writer;
grant select
  on open_namespace_monthly_usages, open_project_monthly_usages,
    open_gitlab_hosted_runner_monthly_usages
  to minutebook_reader, minutebook_auditor;

-- Closed months as they were allocated, and what was said of them: written once after `month_closed`, from
-- entries alone; `rebuild` writes what is missing. Figures in compute-milliseconds.
create table allocations (
  log text not null,
  month date not null, -- the billing month
  namespace_id bigint not null,
  usage_month date not null,
  usage numeric(46, 6) not null, -- net, of all trackings
  included numeric(46, 6) not null,
  drawn numeric(46, 6) not null, -- from all packs
  overage numeric(46, 6) not null,
  absorbed numeric(46, 6) not null,
  not_billable numeric(46, 6) not null,
  packs text not null, -- canonical JSON: what was drawn from which, in that order
  constraint allocations_pkey primary key (log, month, namespace_id, usage_month),
  constraint allocations_whole check (
    usage = included + drawn + overage + absorbed + not_billable
  )
);

create table pack_rolls (
  log text not null,
  month date not null,
  namespace_id bigint not null,
  pack bigint not null, -- index of the version that counts at the cut-off
  opening numeric(46, 6) not null,
  bought numeric(46, 6) not null,
  drawn numeric(46, 6) not null,
  expired numeric(46, 6) not null,
  refunded numeric(46, 6) not null,
  closing numeric(46, 6) not null,
  constraint pack_rolls_pkey primary key (log, month, namespace_id, pack),
  constraint pack_rolls_whole check (
    opening + bought - drawn - expired - refunded = closing
    and least(opening, bought, drawn, expired, refunded, closing) >= 0
  )
);

create table statements (
  log text not null,
  month date not null,
  text text not null, -- canonical JSON, to the byte
  constraint statements_pkey primary key (log, month)
);

do $do$
declare
  name text;
begin
  foreach name in array array['allocations', 'pack_rolls', 'statements'] loop
    execute format(
      'create trigger %I before update or delete on %I for each statement execute function refuse_change()',
      name || '_append_only', name
    );
    execute format('alter table %I enable always trigger %I', name, name || '_append_only');
    execute format('grant select, insert on %I to minutebook_writer', name);
    execute format('grant select on %I to minutebook_reader, minutebook_auditor', name);
  end loop;
end
$do$;

-- The key that signed an attestation, as the first segment of its JWS: one text for each key (BYTES §2).
-- Straight from the bytes, as in 0007.
create function entry_signer(bytes bytea) returns text
language sql immutable parallel safe
return substring(encode(bytes, 'escape') from '"jws":"([A-Za-z0-9_-]+)[.]');

-- Closing asks for the newest of each key, among more entries than there are of any kind but usage.
create index entries_by_attestation
  on entries (log, entry_signer(bytes), index)
  where kind = 'attestation';

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
