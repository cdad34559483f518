-- migrate:up
-- What namespaces, projects and runners are called, as the platform says. None of it is on a log, nor follows
-- from one: a name can be erased, and everything stays as it is without it.
create table names (
  log text not null,
  kind text not null,
  id bigint not null,
  name text not null,
  constraint names_pkey primary key (log, kind, id),
  constraint names_kind_check check (kind in ('namespace', 'project', 'runner')),
  constraint names_name_check check (name <> '')
);

-- When a name of a log was erased last: exports with names that were asked for before may still have it.
create table name_erasures (
  log text not null,
  erased_at timestamptz(3) not null,
  constraint name_erasures_pkey primary key (log)
);

grant select, insert, update, delete on names to minutebook_writer;
grant select, insert, update on name_erasures to minutebook_writer;
grant select on names, name_erasures to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
