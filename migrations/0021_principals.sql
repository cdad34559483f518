-- migrate:up
-- Whether somebody is a person to a log, and so no system there by whichever token, follows from all roles that they
-- ever came with (docs/access.md): these grow, and a row stays who it is about. A row may still be erased by the
-- owner, as what is hashed has the opaque id only.
create function refuse_fewer_roles() returns trigger
language plpgsql as $fn$
begin
  if (new.log, new.id) is distinct from (old.log, old.id)
    or not string_to_array(new.roles, ',') @> string_to_array(old.roles, ',')
  then
    raise exception 'update on principals is refused: roles are added and never taken away'
      using errcode = 'restrict_violation';
  end if;
  return new;
end
$fn$;

create trigger principals_grow
  before update on principals
  for each row execute function refuse_fewer_roles();
alter table principals enable always trigger principals_grow;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
