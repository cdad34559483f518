-- migrate:up
-- What credit runs are made from. None of it is the ledger: what a run did is in its entries. Lines are kept
-- from the preview until they stand on the log, and can be found anew from the run's selection.

-- Namespaces as they were uploaded, by the digest that a selection names. Kept: a selection says no more.
create table namespace_lists (
  log text not null,
  sha256 text not null, -- base64, of the numbers in their order, each with a newline
  namespaces bigint[] not null,
  constraint namespace_lists_pkey primary key (log, sha256)
);

create table credit_previews (
  log text not null,
  id text not null, -- 32 lowercase hex digits, random
  made_at timestamptz(3) not null,
  form text not null,
  selection text not null, -- canonical JSON, as in the entry
  reverses bigint,
  lines bigint not null,
  lines_sha256 text not null, -- base64
  total numeric(46, 6) not null,
  summary text not null, -- canonical JSON
  constraint credit_previews_pkey primary key (log, id)
);
create index credit_previews_by_lines on credit_previews (log, lines_sha256);
create index credit_previews_by_age on credit_previews (made_at);

create table credit_lines (
  log text not null,
  preview text not null,
  line bigint not null, -- from 0
  namespace_id bigint not null,
  usage_month date, -- null: of a pack
  text text not null, -- canonical JSON, as it is hashed
  constraint credit_lines_pkey primary key (log, preview, line)
);
create index credit_lines_by_namespace on credit_lines (log, preview, namespace_id, usage_month);

-- The run that a `pack` entry is of, straight from the bytes, as entry_pack is; null: of none.
create function entry_credit_run(bytes bytea) returns bigint
language sql immutable parallel safe
return substring(
  encode(bytes, 'escape') from
  '"pack_id":"([0-9]{1,19})/[0-9]{1,19}","purchased_in":"[0-9-]{10}","salt":"[^"]{24}","source":"minutebook/credit_run"'
)::bigint;

-- How far a run of packs has come is asked before each step of it.
create index entries_by_credit_run
  on entries (log, entry_credit_run(bytes), index)
  where kind = 'pack' and entry_credit_run(bytes) is not null;

grant select, insert on namespace_lists to minutebook_writer;
grant select, insert, delete on credit_previews, credit_lines to minutebook_writer;
grant select on namespace_lists, credit_previews, credit_lines to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
