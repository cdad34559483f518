-- migrate:up
-- What consumers of the feed acknowledged, beside its entry (core/beside.ts); what they and the log count is in it.
create table feed_acks (
  log text not null,
  index bigint not null,
  consumer text not null,
  up_to bigint not null, -- of entries 0 … up_to−1
  constraint feed_acks_pkey primary key (log, index)
);
create index feed_acks_by_consumer on feed_acks (log, consumer, index);
-- The one that a count goes on from.
create index feed_acks_by_size on feed_acks (log, up_to, index);

create trigger feed_acks_append_only
  before update or delete on feed_acks
  for each statement execute function refuse_change();
alter table feed_acks enable always trigger feed_acks_append_only;
grant select, insert on feed_acks to minutebook_writer;
grant select on feed_acks to minutebook_reader, minutebook_auditor;

-- Whose difference a break is, which its entry does not say. Each acknowledgement asks for its consumer's newest of
-- a month, while reports wait for it: with this index, however many there ever were.
create table portal_breaks (
  log text not null,
  index bigint not null,
  consumer text not null,
  month date not null, -- the billing month
  constraint portal_breaks_pkey primary key (log, index),
  constraint portal_breaks_break foreign key (log, index) references breaks (log, index)
);
create index portal_breaks_newest on portal_breaks (log, consumer, month, index);

create trigger portal_breaks_append_only
  before update or delete on portal_breaks
  for each statement execute function refuse_change();
alter table portal_breaks enable always trigger portal_breaks_append_only;
grant select, insert on portal_breaks to minutebook_writer;
grant select on portal_breaks to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
