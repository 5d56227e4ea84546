create or replace function agui_internal.find_run(thread_id text, run_id text, scope text, needs_thread boolean default false)
returns agui.run
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    key   uuid := agui_internal.visible_thread_key(scope, thread_id);
    found_run agui.run;
begin
    -- The same statement checks that the key belongs to this thread and not to another one.
    if run_id is null then
        select * into found_run
        from agui.run as run
        where run.thread_key = key
            and not exists (
                select from agui.thread as thread
                where thread.thread_key = key and (thread.scope <> find_run.scope or thread.thread_id <> find_run.thread_id)
            )
        order by run.run_no desc
        limit 1;
    else
        select * into found_run
        from agui.run as run
        where run.thread_key = key
            and run.run_id = find_run.run_id
            and not exists (
                select from agui.thread as thread
                where thread.thread_key = key and (thread.scope <> find_run.scope or thread.thread_id <> find_run.thread_id)
            );
    end if;
    if found_run.run_no is not null then
        return found_run;
    end if;

    key := agui_internal.checked_thread_key(thread_id, scope);
    perform from agui.run as run where run.thread_key = key limit 1;
    if not found then
        if not needs_thread and current_setting('agui.unknown_thread', true) = 'empty' then
            return null;
        end if;
        raise exception using
            errcode = 'UI001',
            message = format('thread "%s" is unknown%s', thread_id, case when scope <> '' then format(' in scope "%s"', scope) else '' end),
            hint = 'A thread exists once a run of it has begun. Is it in another scope? After "set agui.unknown_thread = empty" reads of it have no rows.';
    end if;
    raise exception using
        errcode = 'UI002',
        message = format('run "%s" of thread "%s" is unknown', run_id, thread_id),
        hint = format('select * from agui.branches(%L%s) shows the runs that branches end with.', thread_id,
            case when scope <> '' then format(', %L', scope) else '' end);
end
$$;

comment on function agui_internal.find_run(text, text, text, boolean) is
    'The row of a run (null: the head, which is the run begun last). UI001: unknown thread; UI002: '
    'unknown run; UI012: the key belongs to another thread. needs_thread: whether to raise UI001 also where the session reads unknown '
    'threads as empty (agui.unknown_thread = empty); else it is then null.';

revoke execute on function agui_internal.find_run(text, text, text, boolean) from public;
