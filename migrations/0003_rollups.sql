-- migrate:up
-- Sealed usage folded once into buckets; small views over the buckets, under GitLab's names and
-- columns first, ours after. All cost follows what is new, never the size of the log.

create table usage_buckets (
  log text not null,
  tracking text not null,
  billing_month date not null,
  usage_month date not null,
  namespace_id bigint not null,
  project_id bigint not null,
  runner_id bigint not null,
  runner_uuid text not null,
  machine_type text not null,
  not_billable text not null,
  jobs bigint not null,
  duration_ms numeric(30, 0) not null,
  compute_ms numeric(46, 6) not null,
  last_index bigint not null,
  constraint usage_buckets_pkey primary key (
    log, billing_month, tracking, namespace_id, project_id, runner_uuid, machine_type,
    not_billable, usage_month, runner_id
  ),
  constraint usage_buckets_months check (
    billing_month = date_trunc('month', billing_month)
    and usage_month = date_trunc('month', usage_month)
  )
);

-- Entries 0 … size−1 are folded and in the views; moved in the refresh's transaction.
create table watermarks (
  log text not null,
  size bigint not null,
  leaf bytea not null, -- of entry size − 1: a size that was changed by hand betrays itself
  refreshed_at timestamptz(3) not null,
  constraint watermarks_pkey primary key (log),
  constraint watermarks_size_positive check (size > 0)
);

-- Shown figures come by integer division of exact sums, half up: `/` rounds numerics to some sixteen
-- digits first, and a figure rounded twice is another figure.
create materialized view open_namespace_monthly_usages as
select
  log,
  tracking,
  namespace_id,
  billing_month as date,
  usage_month,
  div(sum(compute_ms) + 300, 600) * 0.01 as amount_used,
  div(sum(duration_ms), 1000)::bigint as shared_runners_duration,
  sum(jobs)::bigint as jobs,
  sum(duration_ms) as duration_ms,
  sum(compute_ms) as gross_compute_ms,
  0::numeric(46, 6) as adjustment_compute_ms,
  sum(compute_ms) as net_compute_ms,
  coalesce(sum(compute_ms) filter (where not_billable = ''), 0.000000) as billable_compute_ms,
  max(last_index) as last_index
from usage_buckets
group by log, tracking, namespace_id, billing_month, usage_month
with data;
create unique index open_namespace_monthly_usages_key
  on open_namespace_monthly_usages (log, date, tracking, namespace_id, usage_month);

create materialized view open_project_monthly_usages as
select
  log,
  tracking,
  project_id,
  namespace_id,
  billing_month as date,
  usage_month,
  div(sum(compute_ms) + 300, 600) * 0.01 as amount_used,
  div(sum(duration_ms), 1000)::bigint as shared_runners_duration,
  sum(jobs)::bigint as jobs,
  sum(duration_ms) as duration_ms,
  sum(compute_ms) as gross_compute_ms,
  0::numeric(46, 6) as adjustment_compute_ms,
  sum(compute_ms) as net_compute_ms,
  coalesce(sum(compute_ms) filter (where not_billable = ''), 0.000000) as billable_compute_ms,
  max(last_index) as last_index
from usage_buckets
group by log, tracking, project_id, namespace_id, billing_month, usage_month
with data;
create unique index open_project_monthly_usages_key
  on open_project_monthly_usages (log, date, tracking, namespace_id, project_id, usage_month);

create materialized view open_gitlab_hosted_runner_monthly_usages as
select
  log,
  tracking,
  runner_id,
  div(sum(duration_ms), 1000)::bigint as runner_duration_seconds,
  project_id,
  namespace_id as root_namespace_id,
  billing_month,
  div(sum(compute_ms) + 3, 6) * 0.0001 as compute_minutes_used,
  usage_month,
  sum(jobs)::bigint as jobs,
  sum(duration_ms) as duration_ms,
  sum(compute_ms) as gross_compute_ms,
  0::numeric(46, 6) as adjustment_compute_ms,
  sum(compute_ms) as net_compute_ms,
  coalesce(sum(compute_ms) filter (where not_billable = ''), 0.000000) as billable_compute_ms,
  max(last_index) as last_index
from usage_buckets
where tracking = 'hosted'
group by log, tracking, runner_id, project_id, namespace_id, billing_month, usage_month
with data;
create unique index open_gitlab_hosted_runner_monthly_usages_key
  on open_gitlab_hosted_runner_monthly_usages
    (log, billing_month, runner_id, root_namespace_id, project_id, usage_month);

-- The public names. Closed months join them as rows written once.
create view ci_namespace_monthly_usages as
select * from open_namespace_monthly_usages;
create view ci_project_monthly_usages as
select * from open_project_monthly_usages;
create view ci_gitlab_hosted_runner_monthly_usages as
select * from open_gitlab_hosted_runner_monthly_usages;

grant select, insert, update on usage_buckets, watermarks to minutebook_writer;
grant select, maintain
  on open_namespace_monthly_usages, open_project_monthly_usages,
    open_gitlab_hosted_runner_monthly_usages
  to minutebook_writer;
grant select
  on ci_namespace_monthly_usages, ci_project_monthly_usages, ci_gitlab_hosted_runner_monthly_usages
  to minutebook_writer;
grant select
  on usage_buckets, watermarks,
    open_namespace_monthly_usages, open_project_monthly_usages,
    open_gitlab_hosted_runner_monthly_usages,
    ci_namespace_monthly_usages, ci_project_monthly_usages, ci_gitlab_hosted_runner_monthly_usages
  to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
