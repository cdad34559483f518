-- migrate:up
-- Which namespace a `quota` or `pack` entry is about, straight from the bytes. No JSON is parsed, so that
-- bytes that are none raise nothing: in canonical JSON this text can only be that member, since inside of
-- a string every quotation mark has a backslash before it, which `escape` doubles and never takes away.
create function entry_namespace(bytes bytea) returns text
language sql immutable parallel safe
return substring(encode(bytes, 'escape') from '"namespace_id":"([0-9]{1,19})"');

-- Few of all entries: a namespace's own are found without reading those of all others.
create index entries_by_namespace
  on entries (log, entry_namespace(bytes), index)
  where kind in ('quota', 'pack');

-- The view's own key begins with the month, of which a namespace's quota asks for all.
create index open_namespace_monthly_usages_by_namespace
  on open_namespace_monthly_usages (log, namespace_id);

-- Notifications: how far each log was looked at. Whoever holds the row looks, of all processes. A log that
-- came back from its archive, or is older than this table, gets its row later: what it did before
-- `news_from` moves levels and tells nobody.
create table quota_marks (
  log text not null,
  index bigint not null default 0, -- entries 0 … index−1 were looked at
  news_from timestamptz(3) not null default '-infinity',
  looked_at timestamptz(3) not null default '-infinity', -- runs back only from what no clock has come to
  constraint quota_marks_pkey primary key (log),
  constraint quota_marks_from_zero check (index >= 0)
);

-- The level that stands, of namespaces that had another than `none` since there is this table. In a later
-- month than its own it stands for `none`.
create table quota_levels (
  log text not null,
  namespace_id bigint not null,
  month date not null,
  level text not null,
  notified bigint not null default 0, -- notifications of this namespace so far
  look_at timestamptz(3), -- when a limit written before comes into force within the month
  constraint quota_levels_pkey primary key (log, namespace_id),
  constraint quota_levels_level check (level in ('none', 'warning', 'danger', 'exceeded'))
);
create index quota_levels_by_look on quota_levels (look_at) where look_at is not null;

-- The outbox, and what is shown of it: written in the transaction that moves level and mark. `due_at` of
-- one that is being sent is when its sender is taken for dead.
create table notifications (
  log text not null,
  namespace_id bigint not null,
  number bigint not null, -- 1, 2, 3 … of a namespace
  id text not null, -- what the receiver tells repeats by
  at timestamptz(3) not null,
  body text not null, -- what is signed and sent, to the byte
  state text not null default 'pending',
  attempts int not null default 0,
  due_at timestamptz(3) not null,
  settled_at timestamptz(3),
  constraint notifications_pkey primary key (log, namespace_id, number),
  constraint notifications_id unique (id),
  constraint notifications_state check (state in ('pending', 'delivered', 'given_up')),
  constraint notifications_settled check ((state = 'pending') = (settled_at is null))
);
create index notifications_by_due on notifications (due_at) where state = 'pending';
create index notifications_by_age on notifications (at);

-- Receivers that are left alone until `due_at`, by SHA-256 of their URL; for ever after a 410.
create table webhook_receivers (
  receiver bytea not null,
  due_at timestamptz(3) not null,
  constraint webhook_receivers_pkey primary key (receiver)
);

grant select, insert, update on quota_marks, quota_levels, webhook_receivers to minutebook_writer;
grant select, insert, update, delete on notifications to minutebook_writer;
grant select on quota_marks, quota_levels, notifications, webhook_receivers
  to minutebook_reader, minutebook_auditor;

-- What was said no to, with what it was computed from, for the namespace's owner to see. Bounded, and not of
-- the log: nothing is computed from it.
create table quota_stops (
  log text not null,
  namespace_id bigint not null,
  job_id bigint not null,
  ask text not null, -- start, go_on, or run: a heartbeat
  first_at timestamptz(3) not null,
  last_at timestamptz(3) not null, -- of which all that follows is said
  times bigint not null,
  asked_by text not null, -- an opaque principal id, or the kid of a runner's key
  reason text not null,
  source text not null, -- who held the live usage: redis or process
  as_of bigint not null,
  live_compute_ms numeric(46, 6) not null,
  reserved_compute_ms numeric(46, 6) not null,
  figures text not null, -- core/quota/figures
  -- No number of its own: of a sequence over all tenants each would show how much the others are refused.
  constraint quota_stops_pkey primary key (log, namespace_id, job_id, ask)
);
create index quota_stops_by_namespace on quota_stops (log, namespace_id, last_at, job_id, ask);
create index quota_stops_by_age on quota_stops (last_at);

grant select, insert, update, delete on quota_stops to minutebook_writer;
grant select on quota_stops to minutebook_reader, minutebook_auditor;

-- Whose `pack` entry it is: as above, from the members that name a pack, whatever quotation marks they hold.
create function entry_pack(bytes bytea) returns text
language sql immutable parallel safe
return substring(encode(bytes, 'escape') from '"source":(".*"),"source_version":')
  || substring(encode(bytes, 'escape') from '"pack_id":(".*"),"purchased_in":');

-- The newest version of a pack is looked up before the next one is written.
create index entries_by_pack
  on entries (log, entry_pack(bytes), index)
  where kind = 'pack';

-- When live usage is next compared with the log, over all processes: whoever moves the row does it.
create table reconciliations (
  part text not null, -- all there is, for now
  due_at timestamptz(3) not null,
  constraint reconciliations_pkey primary key (part)
);

grant select, insert, update on reconciliations to minutebook_writer;
grant select on reconciliations to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
