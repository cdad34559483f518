-- migrate:up
-- The keys that a log begins under, which none of its entries names: fixed when it is made, since the
-- processes that seal it may hold theirs in another order while a key is replaced. Of a log that came
-- back from its archive there is no row, and the first key that a process holds stands in.
create table first_keys (
  log text not null,
  checkpoint text not null, -- verifier keys, as they were answered to whoever made the log
  receipt text not null,
  constraint first_keys_pkey primary key (log)
);

create trigger first_keys_append_only
  before update or delete or truncate on first_keys
  for each statement execute function refuse_change();
alter table first_keys enable always trigger first_keys_append_only;

grant select, insert on first_keys to minutebook_writer;
grant select on first_keys to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
