create or replace function agui.children(thread_id text, run_id text default null, scope text default '')
returns setof agui.run_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    parent agui.run;
begin
    if run_id is not null then
        parent := agui_internal.find_run(thread_id, run_id, scope);
    end if;
    return query
    select info.*
    from agui.runs(thread_id, scope) as info
    where info.parent_run_id is not distinct from parent.run_id
    order by info.run_no;
end
$$;

comment on function agui.children(text, text, text) is
    'Returns the runs that continue from a run, in the order in which they began. Without a run: '
    'the roots of the thread. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.children(text, text, text) from public;
