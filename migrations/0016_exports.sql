-- migrate:up
-- Exports that were asked for, and what became of them. None of it is the ledger: a file is made from entries below
-- its index, and can be made anew from them.
create table exports (
  log text not null,
  id text not null, -- 32 lowercase hex digits, random
  number bigint generated always as identity, -- the order in which they were asked for
  name text not null,
  format text not null,
  parameters text not null, -- canonical JSON
  as_of bigint not null, -- entries 0 … as_of−1
  checkpoint_size bigint not null, -- archived, and covers them
  checkpoint_root bytea not null,
  asked_by text not null, -- opaque, as on the log; empty: the service itself
  asked_at timestamptz(3) not null,
  origin text, -- what the schedule knows it by, so that many processes ask once; null: somebody asked
  kept boolean not null default false, -- for as long as there is a log
  deliver_to text, -- folder or bucket that a copy goes to
  delivered_at timestamptz(3),
  state text not null default 'pending',
  bytes bigint not null default 0, -- written so far
  manifest text, -- canonical JSON, of what is done
  error text, -- the code, of what failed
  ended_at timestamptz(3),
  constraint exports_pkey primary key (log, id),
  constraint exports_origin_key unique (log, origin),
  constraint exports_state_check check (state in ('pending', 'done', 'failed')),
  constraint exports_manifest_check check ((state = 'done') = (manifest is not null)),
  constraint exports_error_check check ((state = 'failed') = (error is not null)),
  constraint exports_ended_check check ((state = 'pending') = (ended_at is null))
);
create index exports_by_number on exports (log, number);
create index exports_pending on exports (number) where state = 'pending';
create index exports_undelivered on exports (number)
  where state = 'done' and deliver_to is not null and delivered_at is null;
create index exports_by_age on exports (asked_at) where not kept;

grant select, insert, update, delete on exports to minutebook_writer;
grant select on exports to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
