-- migrate:up
-- Work that one process does for all: whoever holds the row of a task does it, until then at the latest.
create table evidence_claims (
  task text not null,
  holder text not null,
  until timestamptz(3) not null,
  constraint evidence_claims_pkey primary key (task)
);

grant select, insert, update on evidence_claims to minutebook_writer;
grant select on evidence_claims to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
