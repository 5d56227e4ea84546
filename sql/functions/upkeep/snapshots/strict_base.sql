create or replace function agui_internal.strict_base(thread_key uuid, run_no int)
returns int
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.fold_base(run.thread_key, run.parent_no)
    from agui.run as run
    where run.thread_key = strict_base.thread_key and run.run_no = strict_base.run_no
$$;

comment on function agui_internal.strict_base(uuid, int) is
    'The nearest ancestor of a run that has a snapshot; null if there is none.';

revoke execute on function agui_internal.strict_base(uuid, int) from public;
