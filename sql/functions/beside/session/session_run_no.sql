create or replace function agui_internal.session_run_no(thread_id text, run_id text, scope text)
returns int
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if thread_id is null or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'session state needs a thread id and a scope that are not null';
    end if;
    if run_id is null then
        perform agui_internal.checked_thread_key(thread_id, scope);
        return 0;
    end if;
    return (agui_internal.find_run(thread_id, run_id, scope, true)).run_no;
end
$$;

comment on function agui_internal.session_run_no(text, text, text) is
    'The run number in agui.session_state for a run; 0, which is the thread itself, if no run is '
    'named. UI001: unknown thread; UI002: unknown run; UI008: no thread or no scope.';

revoke execute on function agui_internal.session_run_no(text, text, text) from public;
