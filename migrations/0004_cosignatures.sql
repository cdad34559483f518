-- migrate:up
-- What witnesses signed beside the log (C2SP tlog-cosignature), each after it is durable in the archive.
create table cosignatures (
  log text not null,
  size bigint not null, -- of the checkpoint
  name text not null, -- of the witness's key
  key_id text not null, -- 8 hex digits
  line text not null, -- the signature line of the note, with its newline
  cosigned_at timestamptz(3) not null, -- as the witness says, in whole seconds
  constraint cosignatures_pkey primary key (log, size, key_id),
  constraint cosignatures_size_from_zero check (size >= 0)
);

create trigger cosignatures_append_only
  before update or delete or truncate on cosignatures
  for each statement execute function refuse_change();
alter table cosignatures enable always trigger cosignatures_append_only;

-- When a log is to be submitted to a witness next: who moves `due_at` does it, of all processes.
create table submissions (
  log text not null,
  key_id text not null,
  due_at timestamptz(3) not null default '-infinity',
  cosigned_size bigint not null default 0, -- the largest in `cosignatures`: one look for each log
  -- What the witness said that it has cosigned, where that is more than we had; and whether it has refused
  -- what we have as no continuation. Both stand until it signs one, and a lie of its own ends so too.
  witness_size bigint,
  conflict boolean not null default false,
  constraint submissions_pkey primary key (log, key_id)
);

-- Which checkpoint all witnesses are asked for now. Each at its own pace would sign sizes of its own, and
-- no quorum would ever meet on one. The round is over when the quorum is reached, or its time is.
create table rounds (
  log text not null,
  size bigint not null,
  ends_at timestamptz(3) not null,
  reached bigint not null default 0, -- the largest that reached the quorum
  constraint rounds_pkey primary key (log)
);

grant select, insert on cosignatures to minutebook_writer;
grant select, insert, update on submissions, rounds to minutebook_writer;
grant select on cosignatures, submissions, rounds to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
