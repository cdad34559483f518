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

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
