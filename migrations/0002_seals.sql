-- migrate:up
-- How far a log is sealed, and the right edge of its tree (core/tile encodeEdge): cost follows what is new.
create table seals (
  log text not null,
  size bigint not null,
  leaf bytea not null, -- of entry size − 1, where the chain goes on
  edge bytea not null,
  constraint seals_pkey primary key (log),
  constraint seals_size_from_zero check (size >= 0)
);

-- Every signed checkpoint that is durable in the archive.
create table checkpoints (
  log text not null,
  size bigint not null,
  root bytea not null,
  note text not null,
  sealed_at timestamptz(3) not null,
  constraint checkpoints_pkey primary key (log, size)
);

create trigger checkpoints_append_only
  before update or delete or truncate on checkpoints
  for each statement execute function refuse_change();
alter table checkpoints enable always trigger checkpoints_append_only;

grant select, insert, update on seals to minutebook_writer;
grant select, insert on checkpoints to minutebook_writer;
grant select on seals, checkpoints to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
