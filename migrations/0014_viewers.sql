-- migrate:up
-- What a viewer is shown is read as minutebook_viewer, who may see the rows of one log and of some namespaces
-- of it: two settings of the transaction say which (store/viewer.ts). It is the second of two filters, and
-- knows nothing of the first: a query that forgets to ask for the namespace finds no more than the tenant's.
do $do$
begin
  if not exists (select from pg_roles where rolname = 'minutebook_viewer') then
    raise exception 'there is no role minutebook_viewer: run `minutebook bootstrap` again first';
  end if;
end
$do$;

-- Without settings: nothing.
create function viewer_sees(of_namespace bigint) returns boolean
language sql stable parallel safe
return case current_setting('minutebook.namespaces', true)
  when '*' then true
  when '' then false
  else of_namespace = any(current_setting('minutebook.namespaces', true)::bigint[])
end;

alter table entries enable row level security;
alter table jobs enable row level security;
alter table adjustments enable row level security;
alter table usage_buckets enable row level security;
alter table notifications enable row level security;
alter table quota_stops enable row level security;

create policy entries_all on entries to minutebook_writer, minutebook_reader, minutebook_auditor
  using (true) with check (true);
create policy jobs_all on jobs to minutebook_writer, minutebook_reader, minutebook_auditor
  using (true) with check (true);
create policy adjustments_all on adjustments to minutebook_writer, minutebook_reader, minutebook_auditor
  using (true) with check (true);
create policy usage_buckets_all on usage_buckets to minutebook_writer, minutebook_reader, minutebook_auditor
  using (true) with check (true);
create policy notifications_all on notifications to minutebook_writer, minutebook_reader, minutebook_auditor
  using (true) with check (true);
create policy quota_stops_all on quota_stops to minutebook_writer, minutebook_reader, minutebook_auditor
  using (true) with check (true);

-- What a build costs is told with its card and its limit.
create policy entries_of_viewer on entries for select to minutebook_viewer
  using (
    log = current_setting('minutebook.log', true)
    and case
      when kind = 'usage' then viewer_sees(namespace_id)
      when kind in ('quota', 'pack') then viewer_sees(entry_namespace(bytes)::bigint)
      else kind in ('log', 'rate_card')
    end
  );
create policy jobs_of_viewer on jobs for select to minutebook_viewer
  using (
    log = current_setting('minutebook.log', true)
    and exists (select from entries where entries.log = jobs.log and entries.index = jobs.index)
  );
create policy adjustments_of_viewer on adjustments for select to minutebook_viewer
  using (log = current_setting('minutebook.log', true) and viewer_sees(namespace_id));
create policy usage_buckets_of_viewer on usage_buckets for select to minutebook_viewer
  using (log = current_setting('minutebook.log', true) and viewer_sees(namespace_id));
create policy notifications_of_viewer on notifications for select to minutebook_viewer
  using (log = current_setting('minutebook.log', true) and viewer_sees(namespace_id));
create policy quota_stops_of_viewer on quota_stops for select to minutebook_viewer
  using (log = current_setting('minutebook.log', true) and viewer_sees(namespace_id));

-- Materialized views know no policies. A viewer finds these by the same names, and no others.
create schema tenant;
create view tenant.heads with (security_barrier) as
select * from heads where log = current_setting('minutebook.log', true);
create view tenant.seals with (security_barrier) as
select * from seals where log = current_setting('minutebook.log', true);
create view tenant.watermarks with (security_barrier) as
select * from watermarks where log = current_setting('minutebook.log', true);
create view tenant.ci_namespace_monthly_usages with (security_barrier) as
select *
from ci_namespace_monthly_usages
where log = current_setting('minutebook.log', true) and viewer_sees(namespace_id);
create view tenant.ci_project_monthly_usages with (security_barrier) as
select *
from ci_project_monthly_usages
where log = current_setting('minutebook.log', true) and viewer_sees(namespace_id);
create view tenant.ci_gitlab_hosted_runner_monthly_usages with (security_barrier) as
select *
from ci_gitlab_hosted_runner_monthly_usages
where log = current_setting('minutebook.log', true) and viewer_sees(root_namespace_id);

grant usage on schema tenant to minutebook_viewer;
grant select on all tables in schema tenant to minutebook_viewer;
grant select on entries, jobs, adjustments, usage_buckets, notifications, quota_stops
  to minutebook_viewer;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
