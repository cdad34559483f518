-- migrate:up
-- What the entries of financial control decide, looked up under the head's lock: written with their entry
-- and never again. All of it follows from the entries (core/beside.ts); `rebuild` writes what is missing.

create table proposals (
  log text not null,
  index bigint not null,
  action text not null,
  person text not null, -- opaque id of who proposed
  expires_at timestamptz(3) not null,
  constraint proposals_pkey primary key (log, index)
);

-- How a proposal ended: once.
create table proposal_ends (
  log text not null,
  proposal bigint not null,
  index bigint not null,
  outcome text not null,
  person text not null,
  constraint proposal_ends_pkey primary key (log, proposal),
  constraint proposal_ends_proposal foreign key (log, proposal) references proposals (log, index),
  constraint proposal_ends_outcome check (outcome in ('approved', 'refused', 'withdrawn', 'expired'))
);

-- One entry stands for an approval; of a credit run the run itself.
create table approval_uses (
  log text not null,
  approval bigint not null,
  index bigint not null,
  constraint approval_uses_pkey primary key (log, approval)
);

create table adjustments (
  log text not null,
  index bigint not null,
  line bigint not null, -- of the entry, from 0
  namespace_id bigint not null,
  project_id bigint,
  usage_month date not null,
  billing_month date not null,
  amount numeric(46, 6) not null, -- added to what was charged
  entry bigint, -- the usage that it is about; null: a namespace's month
  reverses_index bigint,
  reverses_line bigint,
  credit_run bigint,
  constraint adjustments_pkey primary key (log, index, line),
  constraint adjustments_reversed_once unique (log, reverses_index, reverses_line)
);
create index adjustments_by_entry on adjustments (log, entry) where entry is not null;
create index adjustments_by_namespace on adjustments (log, namespace_id, usage_month);
create index adjustments_by_run on adjustments (log, credit_run, index) where credit_run is not null;

create table credit_runs (
  log text not null,
  index bigint not null,
  form text not null,
  lines bigint not null,
  total numeric(46, 6) not null,
  reverses bigint,
  constraint credit_runs_pkey primary key (log, index),
  constraint credit_runs_reversed_once unique (log, reverses)
);

create table accounts (
  log text not null,
  index bigint not null,
  namespace_id bigint, -- null: all namespaces of the instance that have none of their own
  effective_from timestamptz(3) not null,
  account_id text not null,
  subscription_id text not null,
  source text not null,
  source_version bigint not null,
  constraint accounts_pkey primary key (log, index)
);
create index accounts_by_namespace on accounts (log, namespace_id, index);

create table hold_ends (
  log text not null,
  hold bigint not null,
  index bigint not null,
  outcome text not null,
  constraint hold_ends_pkey primary key (log, hold)
);

create table conflict_ends (
  log text not null,
  conflict bigint not null,
  index bigint not null,
  outcome text not null,
  constraint conflict_ends_pkey primary key (log, conflict)
);

create table breaks (
  log text not null,
  index bigint not null,
  fingerprint text not null, -- base64: what it is about is opened once
  code text not null,
  month date not null,
  job_id bigint,
  namespace_id bigint,
  runner_id bigint,
  kid text not null,
  tracking text not null,
  difference_ms bigint not null,
  usage bigint,
  constraint breaks_pkey primary key (log, index),
  constraint breaks_opened_once unique (log, fingerprint)
);

create table break_ends (
  log text not null,
  break bigint not null,
  index bigint not null,
  outcome text not null,
  constraint break_ends_pkey primary key (log, break),
  constraint break_ends_break foreign key (log, break) references breaks (log, index)
);

create table coverages (
  log text not null,
  index bigint not null,
  runner_id bigint not null,
  from_at timestamptz(3) not null,
  to_at timestamptz(3) not null,
  jobs bigint not null,
  source text not null,
  constraint coverages_pkey primary key (log, index)
);
create index coverages_by_runner on coverages (log, runner_id, from_at);

-- A month is closed once.
create table month_ends (
  log text not null,
  month date not null,
  index bigint not null,
  closing bigint not null,
  constraint month_ends_pkey primary key (log, month)
);

do $do$
declare
  name text;
begin
  foreach name in array array[
    'proposals', 'proposal_ends', 'approval_uses', 'adjustments', 'credit_runs', 'accounts', 'hold_ends',
    'conflict_ends', 'breaks', 'break_ends', 'coverages', 'month_ends'
  ] loop
    execute format(
      'create trigger %I before update or delete on %I for each statement execute function refuse_change()',
      name || '_append_only', name
    );
    execute format('alter table %I enable always trigger %I', name, name || '_append_only');
    execute format('grant select, insert on %I to minutebook_writer', name);
    execute format('grant select on %I to minutebook_reader, minutebook_auditor', name);
  end loop;
end
$do$;

-- The second person is not the first: whatever the service was made to believe.
create function refuse_same_person() returns trigger
language plpgsql as $fn$
begin
  if new.outcome = 'approved' and exists (
    select
    from proposals
    where log = new.log and index = new.proposal and person = new.person
  ) then
    raise exception 'an approval by who proposed is refused: a second person is needed'
      using errcode = 'restrict_violation';
  end if;
  return new;
end
$fn$;

create trigger proposal_ends_second_person
  before insert on proposal_ends
  for each row execute function refuse_same_person();
alter table proposal_ends enable always trigger proposal_ends_second_person;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
