-- migrate:up
-- Every process looks for new mappings each few seconds, over all logs.
create index entries_role_mappings on entries (log, index) where kind = 'role_mapping';

-- Who read financial or tenant data, and who changed anything: a row before each answer. Not of the log,
-- but its digest is, each day (kind access_digest).
create table access_log (
  log text not null, -- empty: about no log, or about one that there is not
  number bigint not null, -- 1, 2, 3 … of a log, without a gap
  day date not null, -- UTC, and later than every day that was closed
  at timestamptz(3) not null,
  by text not null, -- an opaque principal id
  roles text not null, -- those of the route that the caller holds, with commas between
  method text not null,
  route text not null,
  target text not null, -- the path, which has the route's parameters; never the query
  status int not null,
  request text not null,
  constraint access_log_pkey primary key (log, number)
);
create index access_log_by_day on access_log (log, day, number);

create trigger access_log_append_only
  before update or delete or truncate on access_log
  for each statement execute function refuse_change();
alter table access_log enable always trigger access_log_append_only;

-- Whoever writes rows of a log holds its mark until they are committed, and so does who closes a day: no
-- row can come to a day that is closed, whatever a clock says.
create table access_marks (
  log text not null,
  number bigint not null default 0, -- rows of the log so far
  closed_through date not null default '-infinity',
  constraint access_marks_pkey primary key (log)
);
insert into access_marks (log) values ('');

-- Who has used which log, as what. Erasable: what is hashed has the opaque id only.
create table principals (
  log text not null, -- empty: no log, or all of them
  id text not null,
  issuer text not null,
  subject text not null,
  roles text not null, -- held at the last use, with commas between
  first_at timestamptz(3) not null,
  last_on date not null,
  constraint principals_pkey primary key (log, id)
);
create index principals_by_id on principals (id);

-- For whom nothing holds any more, on one log or, with none, at all; unless it was lifted.
create table barred_principals (
  log text not null,
  id text not null,
  at timestamptz(3) not null,
  by text not null,
  reason text not null,
  constraint barred_principals_pkey primary key (log, id, at)
);

create trigger barred_principals_append_only
  before update or delete or truncate on barred_principals
  for each statement execute function refuse_change();
alter table barred_principals enable always trigger barred_principals_append_only;

create table lifted_bars (
  log text not null,
  id text not null,
  barred_at timestamptz(3) not null,
  at timestamptz(3) not null,
  by text not null,
  reason text not null,
  constraint lifted_bars_pkey primary key (log, id, barred_at),
  constraint lifted_bars_bar_fkey
    foreign key (log, id, barred_at) references barred_principals (log, id, at)
);

create trigger lifted_bars_append_only
  before update or delete or truncate on lifted_bars
  for each statement execute function refuse_change();
alter table lifted_bars enable always trigger lifted_bars_append_only;

-- The lines behind the digest of an access_review entry.
create table access_reviews (
  log text not null,
  list_sha256 bytea not null,
  lines text not null, -- canonical JSON, each with a newline
  constraint access_reviews_pkey primary key (log, list_sha256)
);

create trigger access_reviews_append_only
  before update or delete or truncate on access_reviews
  for each statement execute function refuse_change();
alter table access_reviews enable always trigger access_reviews_append_only;

grant select, insert on access_log, barred_principals, lifted_bars, access_reviews to minutebook_writer;
grant select, insert, update on access_marks, principals to minutebook_writer;
grant select
  on access_log, access_marks, principals, barred_principals, lifted_bars, access_reviews
  to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
