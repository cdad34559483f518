-- migrate:up
-- Why a request was refused: the stable code of its answer (core/problem.ts). Null: the answer is no problem, or
-- was given by a process of a version that wrote no codes. Without a default, so that no row is rewritten.
alter table access_log add column code text;

-- migrate:down
do $$ begin raise exception 'a ledger does not go back'; end $$;
