create or replace function agui.load_sessions(thread_ids text[], run_ids text[] default null, scope text default '')
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if cardinality(thread_ids) <> cardinality(run_ids) then
        raise exception using
            errcode = 'UI008',
            message = 'agui.load_sessions: both arrays must have one item for each thread (null in run_ids: the state of the thread itself)';
    end if;
    return (
        select '[' || coalesce(string_agg(agui.load_session(item.thread_id, item.run_id, scope)::text, ',' order by item.place), '') || ']'
        from unnest(thread_ids, run_ids) with ordinality as item (thread_id, run_id, place)
    )::json;
end
$$;

comment on function agui.load_sessions(text[], text[], text) is
    'Returns the session state (agui.load_session) of several threads as a JSON array, in the '
    'order of the arguments. run_ids names a run for each thread, or null for the state of the '
    'thread itself. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI012 another '
    'thread has the same key.';

revoke execute on function agui.load_sessions(text[], text[], text) from public;
