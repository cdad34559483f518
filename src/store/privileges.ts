/**
 * What the service may be connected as. Grants and triggers guard the log only against roles that
 * can lift neither, so a process looks at its own role before it does anything else.
 */
import { BESIDE_TABLES } from "../core/beside.ts";
import { functionsOf, relationsOf, schemasOf } from "./catalog.ts";
import { CLOSED_TABLES } from "./closed.ts";
import type { Sql } from "./connect.ts";
import { ENDED_TABLES } from "./month-ends.ts";

/** What a trigger fires for, and when: bits of pg_trigger.tgtype. */
const [ROW, BEFORE, INSERT, DELETE, UPDATE, TRUNCATE] = [1, 2, 4, 8, 16, 32];

/** Written once: no role of the service changes or removes their rows, and a trigger refuses the owner. */
const CHANGE = BEFORE | DELETE | UPDATE;
const GUARDED = {
  entries: CHANGE | TRUNCATE,
  jobs: CHANGE,
  reports: CHANGE,
  keys: CHANGE,
  checkpoints: CHANGE | TRUNCATE,
  cosignatures: CHANGE | TRUNCATE,
  first_keys: CHANGE | TRUNCATE,
  access_log: CHANGE | TRUNCATE,
  access_reviews: CHANGE | TRUNCATE,
  barred_principals: CHANGE | TRUNCATE,
  lifted_bars: CHANGE | TRUNCATE,
  ...Object.fromEntries(
    [...BESIDE_TABLES, ...CLOSED_TABLES, ...ENDED_TABLES].map((table) => [table, CHANGE]),
  ),
};
const APPEND_ONLY = Object.keys(GUARDED);

/** What has to be there: trigger, its table, its function and what it fires for. */
const GUARDS = [
  ...Object.entries(GUARDED).map(([table, events]) => ({
    table,
    name: `${table}_append_only`,
    refuses: "refuse_change",
    events,
  })),
  // Of checkpoints that function lets a DELETE pass, for this one to judge it row by row.
  {
    table: "checkpoints",
    name: "checkpoints_kept",
    refuses: "refuse_kept",
    events: ROW | BEFORE | DELETE,
  },
  {
    table: "proposal_ends",
    name: "proposal_ends_second_person",
    refuses: "refuse_same_person",
    events: ROW | BEFORE | INSERT,
  },
  {
    table: "principals",
    name: "principals_grow",
    refuses: "refuse_fewer_roles",
    events: ROW | BEFORE | UPDATE,
  },
];

export class UnsafeRoleError extends Error {
  readonly code = "unsafe-database-role";
  /** All of them; for a superuser the one that implies the others. */
  readonly reasons: readonly string[];

  constructor(role: string, reasons: readonly string[]) {
    super(`the service must not run as ${role}: ${reasons.join("; ")}`);
    this.name = "UnsafeRoleError";
    this.reasons = reasons;
  }
}

/**
 * Refuses a role that could change what was written, or become one that could: attributes,
 * ownership, privileges on the append-only tables, functions that lend their owner's rights, triggers
 * and how to silence them. A membership counts although it is not inherited, since SET ROLE is one
 * statement away. Refuses any role where those triggers are gone or switched off, by an owner or
 * superuser; a table that is missing is the schema's fault, and not named here.
 *
 * @throws {UnsafeRoleError} `unsafe-database-role`, with every reason
 */
export async function assertServiceRole(sql: Sql): Promise<void> {
  // session_user: current_user may be a harmless mask that RESET ROLE takes off.
  const [me] = await sql<[{ name: string; superuser: boolean }]>`
    select rolname as name, rolsuper as superuser
    from pg_roles
    where rolname = session_user
  `;
  if (me.superuser) throw new UnsafeRoleError(me.name, ["it is a superuser"]);
  const found = await Promise.all([
    attributes(sql),
    ownership(sql),
    tablePrivileges(sql),
    otherPrivileges(sql),
    borrowedRights(sql),
    liftedGuards(sql),
  ]);
  const reasons = found.flat().map(({ reason }) => reason);
  if (reasons.length > 0) throw new UnsafeRoleError(me.name, reasons);
}

type Reasons = PromiseLike<{ reason: string }[]>;

/** The roles that this connection is, or may become. */
const mine = (sql: Sql) => sql`
  select *
  from pg_roles
  where pg_has_role(session_user, oid, 'member')
`;

function attributes(sql: Sql): Reasons {
  return sql`
    select format('%s %s', case rolname when session_user then 'it' else rolname end, what) as reason
    from (${mine(sql)}) as mine
    cross join lateral (
      values
        (rolsuper, 'is a superuser'),
        (rolbypassrls, 'bypasses row-level security'),
        (rolcreaterole, 'creates roles'),
        (rolreplication, 'may replicate'),
        (rolname = 'pg_execute_server_program', 'runs programs on the server'),
        (rolname = 'pg_read_server_files', 'reads files of the server'),
        (rolname = 'pg_write_server_files', 'writes files of the server')
    ) as attribute (has, what)
    where has
    order by reason
  `;
}

/** An owner grants itself anything, disables triggers, and drops what is in the way. */
function ownership(sql: Sql): Reasons {
  return sql`
    select 'it owns ' || what as reason
    from (
      select relowner as owner, format('relation %s', oid::regclass) as what
      from (${relationsOf(sql)}) as relation
      where relkind in ('r', 'p', 'v', 'm', 'S', 'f')
      union all
      select proowner, format('function %s', oid::regproc)
      from (${functionsOf(sql)}) as function
      union all
      select nspowner, format('schema %I', nspname)
      from (${schemasOf(sql)}) as schema
      union all
      select datdba, format('database %I', datname)
      from pg_database
      where datname = current_database()
    ) as owned
    where pg_has_role(session_user, owner, 'member')
    order by reason
  `;
}

/** A partition has grants of its own, by which its rows can be reached. */
function tablePrivileges(sql: Sql): Reasons {
  return sql`
    select distinct format('it has %s on %I', privilege, part.relname) as reason
    from (${mine(sql)}) as mine
    cross join unnest(array['UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER']) as privilege
    cross join pg_class as part
    join pg_class as whole
      on whole.oid = part.oid or whole.oid in (select pg_partition_ancestors(part.oid))
    where whole.relnamespace = 'public'::regnamespace
      and whole.relname = any(${APPEND_ONLY})
      and part.relkind in ('r', 'p')
      and (
        has_table_privilege(mine.oid, part.oid, privilege)
        or privilege = 'UPDATE' and has_any_column_privilege(mine.oid, part.oid, privilege)
      )
    order by reason
  `;
}

function otherPrivileges(sql: Sql): Reasons {
  return sql`
    select distinct reason
    from (${mine(sql)}) as mine
    cross join lateral (
      values
        (
          has_parameter_privilege(mine.oid, 'session_replication_role', 'SET'),
          'it may set session_replication_role'
        ),
        (
          has_database_privilege(mine.oid, current_database(), 'CREATE'),
          format('it may create in database %I', current_database())
        )
    ) as privilege (has, reason)
    where has
    union
    select format('it may create in schema %I', nspname)
    from (${mine(sql)}) as mine
    cross join pg_namespace
    where nspname !~ '^pg_temp' and has_schema_privilege(mine.oid, pg_namespace.oid, 'CREATE')
    order by reason
  `;
}

/** The one of the migrations (0005): the service holds no DELETE, and removes checkpoints by it. */
const DEFINER = "public.remove_checkpoints(text,bigint[])";

/**
 * A function with its owner's rights is a way around every grant. Without USAGE on its schema too, since an
 * operator or a view names it; a trigger's whoever may execute it, since nobody is asked when it fires. Not an
 * event trigger's, which nobody calls: extensions that audit bring such.
 */
function borrowedRights(sql: Sql): Reasons {
  return sql`
    select distinct format('it may run %s with the rights of %I', pg_proc.oid::regprocedure, pg_get_userbyid(proowner))
      as reason
    from (${mine(sql)}) as mine
    cross join pg_proc
    where prosecdef
      and prorettype <> 'event_trigger'::regtype
      and pg_proc.oid is distinct from to_regprocedure(${DEFINER})
      and (
        has_function_privilege(mine.oid, pg_proc.oid, 'EXECUTE')
        or exists (select from pg_trigger where tgfoid = pg_proc.oid)
      )
    order by reason
  `;
}

/** ALWAYS, because session_replication_role = replica passes over every other trigger. */
function liftedGuards(sql: Sql): Reasons {
  return sql`
    select format('%I has no trigger %s that is enabled always', relname, name) as reason
    from pg_class
    join unnest(
      ${sql.array(GUARDS.map(({ table }) => table))}::text[],
      ${sql.array(GUARDS.map(({ name }) => name))}::text[],
      ${sql.array(GUARDS.map(({ refuses }) => refuses))}::text[],
      ${sql.array(
        GUARDS.map(({ events }) => events),
        INT4_ARRAY,
      )}::int[]
    ) as guard (on_table, name, refuses, events) on on_table = relname
    where relnamespace = 'public'::regnamespace
      and relkind in ('r', 'p')
      and not exists (
        select
        from pg_trigger
        join pg_proc on pg_proc.oid = tgfoid
        where tgrelid = pg_class.oid
          and tgname = guard.name
          and proname = refuses
          and tgenabled = 'A'
          and tgtype & events = events
          and tgqual is null
          and tgattr::text = ''
      )
    order by reason
  `;
}

const INT4_ARRAY = 1007;
