/**
 * What the database itself says that it guards the log with, as lines in one order: equal texts are equal
 * guards, on whichever server. Names in the place of numbers, so that a restored database reads the same.
 */
import type { Sql } from "./connect.ts";

export interface Catalog {
  /** Who may do what: owners and privileges of everything, roles, who is a member of which, what is set for whom. */
  grants: string[];
  /** What is done and refused whoever asks: triggers, functions, policies, constraints, views, unique indexes. */
  guards: string[];
}

export async function readCatalog(sql: Sql): Promise<Catalog> {
  const [grants, guards] = await Promise.all([readGrants(sql), readGuards(sql)]);
  return { grants: linesOf(grants), guards: linesOf(guards) };
}

/** FirstNormalObjectId of access/transam.h: below it is what every server of a version comes with. */
const FIRST_OID = 16_384;

/** BOOTSTRAP_SUPERUSERID of catalog/pg_authid.dat: whose all of that is. */
const FIRST_ROLE = 10;

/** Of all schemas but those that hold one session's temporary things, or the storage of others. */
const LASTING = "^(?!pg_toast|pg_temp)";

/** What was made here, in whichever schema: what guards, or opens, a table can be in any. */
export const relationsOf = (sql: Sql) => sql`
  select pg_class.oid, nspname, relname, relkind, relowner, relacl, reloptions, relrowsecurity, relforcerowsecurity
  from pg_class
  join pg_namespace on pg_namespace.oid = relnamespace
  where pg_class.oid >= ${FIRST_OID} and nspname ~ ${LASTING}`;

/** As of relations; a superuser may put one into pg_catalog too. */
export const functionsOf = (sql: Sql) => sql`
  select pg_proc.oid, nspname, proname, proowner, proacl, prokind
  from pg_proc
  join pg_namespace on pg_namespace.oid = pronamespace
  where pg_proc.oid >= ${FIRST_OID} and nspname ~ ${LASTING}`;

/** `public` comes with the server, but is ours. */
export const schemasOf = (sql: Sql) => sql`
  select oid, nspname, nspowner, nspacl
  from pg_namespace
  where (oid >= ${FIRST_OID} or nspname = 'public') and nspname ~ ${LASTING}`;

/**
 * What the server came with, where its privileges or owner are no longer those that it came with: nothing on
 * whichever version, as long as nobody grants or revokes any.
 */
const alteredOf = (sql: Sql) => sql`
  select what, owner, coalesce(acl, usual) as acl
  from (
    select 'pg_class'::regclass as class, pg_class.oid, 0 as part, format('relation %I.%I', nspname, relname) as what,
      relowner as owner, relacl as acl, acldefault(case relkind when 'S' then 's'::"char" else 'r' end, relowner) as usual
    from pg_class
    join pg_namespace on pg_namespace.oid = relnamespace
    where relkind in ('r', 'p', 'v', 'm', 'S', 'f')
    union all
    select 'pg_class'::regclass, attrelid, attnum, format('column %s.%I', attrelid::regclass, attname),
      relowner, attacl, acldefault('c', relowner)
    from pg_attribute
    join pg_class on pg_class.oid = attrelid
    where attacl is not null
    union all
    select 'pg_proc'::regclass, pg_proc.oid, 0,
      format('function %I.%I(%s)', nspname, proname, pg_get_function_identity_arguments(pg_proc.oid)),
      proowner, proacl, acldefault('f', proowner)
    from pg_proc
    join pg_namespace on pg_namespace.oid = pronamespace
    union all
    select 'pg_namespace'::regclass, oid, 0, format('schema %I', nspname), nspowner, nspacl, acldefault('n', nspowner)
    from pg_namespace
    where nspname <> 'public'
  ) as shipped
  left join pg_init_privs as came
    on came.classoid = class and came.objoid = shipped.oid and came.objsubid = part
  cross join lateral (values (coalesce(initprivs, usual))) as at_first (initial)
  where shipped.oid < ${FIRST_OID}
    and (owner <> ${FIRST_ROLE} or acl is not null and not (acl @> initial and acl <@ initial))`;

/** Who can connect here, and what one of ours is or may become. */
const presentRoles = (sql: Sql) => sql`
  select oid
  from pg_roles as role
  where has_database_privilege(oid, current_database(), 'CONNECT')
    or exists (
      select
      from pg_roles as ours
      where ours.rolname like 'minutebook\\_%' and pg_has_role(ours.oid, role.oid, 'member')
    )`;

interface Line {
  line: string;
}

/** By code points: collations differ from server to server. */
function linesOf(rows: readonly Line[]): string[] {
  return rows.map(({ line }) => line).sort();
}

/** Of roles those that are named ours; of whoever is present what they are members of, and what is set for them. */
async function readGrants(sql: Sql): Promise<Line[]> {
  return await sql<Line[]>`
    with held as (
      select format('relation %I.%I', nspname, relname) as what, relowner as owner,
        coalesce(relacl, acldefault(case relkind when 'S' then 's'::"char" else 'r' end, relowner)) as acl
      from (${relationsOf(sql)}) as relation
      where relkind in ('r', 'p', 'v', 'm', 'S', 'f')
      union all
      select format('column %I.%I.%I', nspname, relname, attname), relowner, attacl
      from pg_attribute
      join (${relationsOf(sql)}) as relation on relation.oid = attrelid
      where attacl is not null and not attisdropped
      union all
      select format('function %I.%I(%s)', nspname, proname, pg_get_function_identity_arguments(oid)),
        proowner, coalesce(proacl, acldefault('f', proowner))
      from (${functionsOf(sql)}) as function
      union all
      select format('schema %I', nspname), nspowner, coalesce(nspacl, acldefault('n', nspowner))
      from (${schemasOf(sql)}) as schema
      union all
      select what, owner, acl
      from (${alteredOf(sql)}) as altered
      union all
      select 'database', datdba, coalesce(datacl, acldefault('d', datdba))
      from pg_database
      where datname = current_database()
      union all
      select format('what comes to be as %s', defaclobjtype), defaclrole, defaclacl
      from pg_default_acl
    )
    select format('%s is of %s', what, pg_get_userbyid(owner)) as line
    from held
    union
    select format(
      '%s: %s to %s by %s%s', what, privilege_type,
      case grantee when 0 then 'public' else pg_get_userbyid(grantee) end,
      pg_get_userbyid(grantor), case when is_grantable then ', to hand on' else '' end
    )
    from held
    cross join lateral aclexplode(acl)
    union
    select format(
      'role %s:%s%s%s%s%s', rolname,
      case when rolsuper then ' superuser' else '' end,
      case when rolbypassrls then ' bypasses row-level security' else '' end,
      case when rolcreaterole then ' creates roles' else '' end,
      case when rolreplication then ' replicates' else '' end,
      case when rolcanlogin then ' logs in' else '' end
    )
    from pg_roles
    where rolname like 'minutebook\\_%'
    union
    select format(
      'role %s is a member of %s%s%s', pg_get_userbyid(member), pg_get_userbyid(roleid),
      case when inherit_option then ', inherits' else '' end,
      case when set_option then ', may become it' else '' end
    )
    from pg_auth_members
    where member in (${presentRoles(sql)})
    union
    select format(
      'parameter %s: %s to %s%s', parname, privilege_type,
      case grantee when 0 then 'public' else pg_get_userbyid(grantee) end,
      case when is_grantable then ', to hand on' else '' end
    )
    from pg_parameter_acl
    cross join lateral aclexplode(paracl)
    where grantee = 0 or grantee in (${presentRoles(sql)})
    union
    select format(
      'set for %s in %s: %s', case setrole when 0 then 'everybody' else 'role ' || pg_get_userbyid(setrole) end,
      case setdatabase when 0 then 'every database' else 'this database' end, setting
    )
    from pg_db_role_setting
    cross join unnest(setconfig) as setting
    where (setdatabase = 0 or setdatabase = (select oid from pg_database where datname = current_database()))
      and (setrole = 0 or setrole in (${presentRoles(sql)}))`;
}

async function readGuards(sql: Sql): Promise<Line[]> {
  return await sql<Line[]>`
    with ours as (${relationsOf(sql)})
    select format('%s; enabled %s', pg_get_triggerdef(pg_trigger.oid), tgenabled) as line
    from pg_trigger
    join ours on ours.oid = tgrelid
    where not tgisinternal
    union all
    select format('event trigger %I on %s; enabled %s', evtname, evtevent, evtenabled)
    from pg_event_trigger
    union all
    select pg_get_functiondef(oid)
    from (${functionsOf(sql)}) as function
    where prokind <> 'a'
    union all
    select format(
      'policy %I on %I.%I for %s to %s using %s check %s; permissive %s',
      polname, nspname, relname, polcmd,
      (
        select string_agg(name, ', ' order by name collate "C")
        from unnest(polroles) as role
        cross join lateral (select case role when 0 then 'public' else pg_get_userbyid(role) end) as named (name)
      ),
      pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid), polpermissive
    )
    from pg_policy
    join ours on ours.oid = polrelid
    union all
    select format('row security of %I.%I: %s, forced %s', nspname, relname, relrowsecurity, relforcerowsecurity)
    from ours
    where relkind in ('r', 'p')
    union all
    select format(
      'constraint %I on %I.%I: %s', conname, nspname, relname, pg_get_constraintdef(pg_constraint.oid)
    )
    from pg_constraint
    join ours on ours.oid = conrelid
    union all
    select pg_get_indexdef(indexrelid)
    from pg_index
    join ours on ours.oid = indrelid
    where indisunique
    union all
    select format('view %I.%I with %s: %s', nspname, relname, reloptions, pg_get_viewdef(oid))
    from ours
    where relkind in ('v', 'm')
    union all
    select format('rule %I on %I.%I: %s', rulename, nspname, relname, pg_get_ruledef(pg_rewrite.oid))
    from pg_rewrite
    join ours on ours.oid = ev_class
    where rulename <> '_RETURN'`;
}
