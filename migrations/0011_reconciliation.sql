-- migrate:up
-- What the platform says that jobs did: the population that the log is held against. It is mutable, nothing is
-- charged from it, and all of it can be fetched again.
create table platform_jobs (
  log text not null,
  job_id bigint not null,
  runner_id bigint not null,
  tracking text not null, -- of the runner, by the log's enrolments
  project_id bigint, -- null, as with all below: the platform did not say
  namespace_id bigint,
  status text not null,
  started_at timestamptz(3),
  finished_at timestamptz(3),
  duration_ms bigint,
  source text not null, -- pull, webhook or upload
  seen_at timestamptz(3) not null, -- by the database's clock
  revision bigint not null default 0, -- of what was seen: what was judged is settled only if it stands still
  state text not null default 'new', -- core/match
  usage bigint, -- the entry that it was held against
  due_at timestamptz(3), -- when it is held against the log again
  constraint platform_jobs_pkey primary key (log, job_id)
);
create index platform_jobs_by_due on platform_jobs (log, due_at) where due_at is not null;
create index platform_jobs_by_runner on platform_jobs (log, runner_id, finished_at);
create index platform_jobs_unconfirmed on platform_jobs (log, job_id)
  where state in ('running', 'held', 'awaiting', 'missing');

-- Hosted usage whose job the platform has not named yet.
create table unseen_usages (
  log text not null,
  index bigint not null,
  job_id bigint not null,
  runner_id bigint not null,
  project_id bigint not null,
  finished_at timestamptz(3) not null,
  asked_at timestamptz(3), -- when the platform was asked after it by number, and did not know it
  broken boolean not null default false, -- a break says so
  constraint unseen_usages_pkey primary key (log, job_id)
);
create index unseen_usages_by_runner on unseen_usages (log, runner_id, finished_at);

-- How far each log was looked at, by part. A part of a log that has no row is not looked at; whoever moves
-- `due_at` looks. All tables from here on are of the log, and come back when their mark is put to 0.
create table reconcile_marks (
  log text not null,
  part text not null, -- population or watch
  index bigint not null default 0, -- entries 0 … index−1 were looked at
  due_at timestamptz(3) not null default '-infinity',
  constraint reconcile_marks_pkey primary key (log, part)
);

-- A walk over a runner's jobs, as far as it has come. No row is no walk.
create table pull_marks (
  log text not null,
  runner_id bigint not null,
  walk_to timestamptz(3), -- of the walk under way: all that finished before is in it
  next text, -- path and query of its next page; null: all pages were read, jobs are asked after by number
  failures int not null default 0, -- in a row
  due_at timestamptz(3) not null, -- of the next step, or when a claim runs out
  constraint pull_marks_pkey primary key (log, runner_id)
);

-- Hosted usage by what anomalies are told from.
create table namespace_days (
  log text not null,
  namespace_id bigint not null,
  day date not null,
  compute_ms numeric(46, 6) not null,
  constraint namespace_days_pkey primary key (log, namespace_id, day)
);
create table runner_hours (
  log text not null,
  runner_id bigint not null,
  hour timestamptz(3) not null,
  duration_ms bigint not null, -- of all jobs together, as far as they ran within the hour
  constraint runner_hours_pkey primary key (log, runner_id, hour)
);

-- Per key, what it attested last and which counters were looked at.
create table key_marks (
  log text not null,
  kid text not null,
  checked bigint not null default 0, -- counters 1 … checked stand, or are in a gap
  attested bigint not null default 0,
  heard_at timestamptz(3), -- of the newest attestation's entry, else of the key's own
  attested_at timestamptz(3), -- of the newest attestation's entry
  undelivered_since timestamptz(3), -- of the first of those in a row that had something in the spool
  constraint key_marks_pkey primary key (log, kid)
);
create table counter_gaps (
  log text not null,
  kid text not null,
  first bigint not null,
  last bigint not null,
  since timestamptz(3) not null,
  constraint counter_gaps_pkey primary key (log, kid, first)
);

-- Each attestation asks what its key's silence opened.
create index breaks_by_kid on breaks (log, kid) where kid <> '';
-- Each match asks what its jobs' earlier ones opened.
create index breaks_by_job on breaks (log, job_id) where job_id is not null;

grant select, insert, update, delete on
  platform_jobs, unseen_usages, reconcile_marks, pull_marks, namespace_days, runner_hours, key_marks,
  counter_gaps
  to minutebook_writer;
grant select on
  platform_jobs, unseen_usages, reconcile_marks, pull_marks, namespace_days, runner_hours, key_marks,
  counter_gaps
  to minutebook_reader, minutebook_auditor;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
