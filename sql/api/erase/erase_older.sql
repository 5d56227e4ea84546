create or replace procedure agui.erase_older(
    older_than  interval,
    reason      text default null,
    max_threads int default null,
    max_time    interval default null,
    scope       text default ''
)
language plpgsql
-- No SET clause: a procedure that has one cannot commit. Every name is qualified instead.
as $$
declare
    stop_at timestamptz := pg_catalog.clock_timestamp() + max_time;
    next    agui_internal.inactive_thread;
    threads int := 0;
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.erase_older does nothing on a standby';
        return;
    end if;
    loop
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('erase')) then
            raise notice 'agui.erase_older does nothing: another one is at work';
            return;
        end if;
        exit when threads >= max_threads or pg_catalog.clock_timestamp() >= stop_at;

        select * into next from agui_internal.inactive_threads(older_than, scope, next.thread_key) limit 1;
        exit when not found;
        perform agui_internal.erase_thread(next.thread_key, reason, older_than);  -- unless it has news meanwhile
        commit;
        threads := threads + 1;
    end loop;
    commit;
end
$$;

comment on procedure agui.erase_older(interval, text, int, interval, text) is
    'Erases (agui.erase) the threads of a scope (null: of all scopes) to which nothing was appended, and in '
    'which nothing was saved, for older_than. Commits thread by thread and stops after max_threads or '
    'max_time (null: when all are gone). Call it outside a transaction block.';

revoke execute on procedure agui.erase_older(interval, text, int, interval, text) from public;
