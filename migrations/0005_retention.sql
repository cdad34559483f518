-- migrate:up
-- Of checkpoints, those that nothing needs may go: kept are the latest of a log, the newest of each ten
-- minutes of UTC, every one that was cosigned or that an adopted archive goes on from, and the last that
-- a retired key has signed: it leads whoever trusts that key to its successor. Tables that come to refer
-- to checkpoints keep theirs by a foreign key. No signature can be verified here, so this judges rows
-- alone: of the archive nothing goes unless src/flow/log/superseded.ts says so too.

create function checkpoint_is_kept(candidate checkpoints) returns boolean
language sql stable set search_path = public, pg_temp as $fn$
  select
    coalesce(
      (
        -- Times ascend with sizes, so the next one is the first of a later slot, or of the same.
        select
          date_bin('10 minutes', next.sealed_at, 'epoch')
            > date_bin('10 minutes', candidate.sealed_at, 'epoch')
        from checkpoints as next
        where next.log = candidate.log and next.size > candidate.size
        order by next.size
        limit 1
      ),
      true
    )
    or exists (
      select
      from cosignatures
      where cosignatures.log = candidate.log and cosignatures.size = candidate.size
    )
    or exists (
      select
      from entries
      where entries.log = candidate.log
        and kind = 'archive_adopted'
        and convert_from(bytes, 'UTF8')::jsonb #>> '{body,size}' = candidate.size::text
    )
    or exists (
      select
      from entries as retirement
      where retirement.log = candidate.log
        and retirement.kind = 'log_key'
        and retirement.index >= candidate.size
        and convert_from(retirement.bytes, 'UTF8')::jsonb #>> '{body,state}' = 'retired'
        and not exists (
          select
          from checkpoints as nearer
          where nearer.log = candidate.log
            and nearer.size > candidate.size
            and nearer.size <= retirement.index
        )
    )
$fn$;

-- As before, but for DELETE on checkpoints, which is judged row by row below. The trigger itself stays:
-- it still refuses UPDATE and TRUNCATE, and the release before looks for it.
create or replace function refuse_change() returns trigger
language plpgsql as $fn$
begin
  if tg_op = 'DELETE' and tg_table_name = 'checkpoints' then
    return null;
  end if;
  -- No look at OLD: the same function serves TRUNCATE, which has none.
  raise exception '% on % is refused: the log is append-only; correct by a new entry',
    tg_op, tg_table_name
    using errcode = 'restrict_violation';
end
$fn$;

create function refuse_kept() returns trigger
language plpgsql set search_path = public, pg_temp as $fn$
begin
  if checkpoint_is_kept(old) then
    raise exception 'DELETE on checkpoints is refused: checkpoint % of log % is kept', old.size, old.log
      using errcode = 'restrict_violation';
  end if;
  return old;
end
$fn$;

create trigger checkpoints_kept
  before delete on checkpoints
  for each row execute function refuse_kept();
alter table checkpoints enable always trigger checkpoints_kept;

-- The one way to delete for the service, which holds no DELETE: it removes what it may of those that it
-- is given, and says which.
create function remove_checkpoints(of_log text, of_sizes bigint[]) returns setof bigint
language sql volatile security definer set search_path = public, pg_temp as $fn$
  delete from checkpoints
  where log = of_log and size = any(of_sizes) and not checkpoint_is_kept(checkpoints)
  returning size
$fn$;
revoke execute on function remove_checkpoints from public;

-- How far a log was gone over: checkpoints by size, and entries whose partial tiles and bundles went.
create table retentions (
  log text not null,
  checkpoints_to bigint not null,
  tiles_to bigint not null,
  constraint retentions_pkey primary key (log),
  constraint retentions_from_zero check (checkpoints_to >= 0 and tiles_to >= 0)
);

grant execute on function remove_checkpoints to minutebook_writer;
grant select, insert, update on retentions to minutebook_writer;
grant select on retentions to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
