-- role: maintainer
create or replace function agui.erase(thread_id text, reason text default null, scope text default '')
returns agui.erasure
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    erasure agui.erasure := agui_internal.erase_thread(agui_internal.key_to_change(thread_id, scope), reason);
begin
    if erasure.erased_key is null then
        raise exception using
            errcode = 'UI001',
            message = format('thread "%s" is unknown%s', thread_id, case when scope <> '' then format(' in scope "%s"', scope) else '' end),
            hint = 'Is it in another scope?';
    end if;
    return erasure;
end
$$;

comment on function agui.erase is
    'Removes a thread permanently: its log, runs, snapshots, session state, checkpoints and '
    'claims, in one transaction. Returns the row that remains in agui.erasure, which does not '
    'contain the name of the thread. While that row stands, every write to the thread fails with '
    'UI014; agui.lift_erasure permits writes. Requires agui_maintainer. The space is reusable '
    'after the next vacuum. Statistics, server logs, standbys, backups and WAL archives still '
    'contain parts of the thread for some time (docs/erasure.md). '
    'Errors: UI001 unknown thread, UI012 another thread has the same key, UI025 the thread is held.';

-- It leaves held threads.
-- role: maintainer; route: worker; never: UI025
create or replace procedure agui.erase_older(
    older_than  interval,
    reason      text default null,
    max_threads int default null,
    max_time    interval default null,
    scope       text default ''
)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    next    agui_internal.inactive_thread;
    threads int := 0;
    erasure agui.erasure;
    pass    int := 1;
    busy    pg_catalog.uuid[] := '{}';  -- threads that other transactions hold, for the second pass
    failed  pg_catalog.uuid[] := '{}';
    failure pg_catalog.text;
    code    pg_catalog.text;
    blocked pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.erase_older does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    loop
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('erase')) then
            blocked := agui_internal.job_lock_problem('erase');
            if blocked is null then
                raise notice 'agui.erase_older stops: another agui.erase_older is in progress';
            end if;
            exit;
        end if;
        exit when threads >= max_threads or pg_catalog.clock_timestamp() >= stop_at;

        if pass = 1 then
            select * into next from agui_internal.inactive_threads(older_than, scope, next.thread_key, 1);
            if not found then
                pass := 2;
                continue;
            end if;
        else
            exit when busy = '{}';
            next.thread_key := busy[1];
            busy := busy[2 :];
        end if;
        begin
            -- unless the thread has become active in the meantime
            erasure := agui_internal.erase_thread(next.thread_key, reason, older_than);
            if erasure.erased_key is not null then
                threads := threads + 1;
            end if;
        exception
            when others then
                if sqlstate = '55P03' then
                    busy := case when pass = 1 then busy || next.thread_key else busy end;
                else
                    raise warning 'agui.erase_older: thread with key %: %', next.thread_key, sqlerrm;
                    failed := failed || next.thread_key;
                    failure := coalesce(failure, sqlerrm);
                    code := coalesce(code, sqlstate);
                end if;
        end;
        commit;
        set local search_path = pg_catalog, pg_temp;
    end loop;
    commit;
    set local search_path = pg_catalog, pg_temp;

    perform agui_internal.refuse_blocked('agui.erase_older', blocked);
    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('agui.erase_older: %s threads could not be erased: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their keys: ' || pg_catalog.array_to_string(failed, ', ');
    end if;
    commit;
end
$$;

comment on procedure agui.erase_older is
    'Erases (agui.erase) the threads of a scope (null: of all scopes) in which nothing was appended '
    'or saved for older_than. Commits after each thread. Stops after max_threads or max_time (null: '
    'no limit), or in time before statement_timeout. If a thread is locked by another transaction '
    'or fails, the others are still erased. Call it outside a transaction block.';

-- role: maintainer
create or replace function agui.lift_erasure(thread_id text, scope text default '')
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid := agui_internal.key_to_change(thread_id, scope);
begin
    update agui.erasure as erasure
    set allowed_at = clock_timestamp(), allowed_by = session_user
    where erasure.erased_key = agui_internal.erasure_key(key) and erasure.allowed_at is null;
    return found;
end
$$;

comment on function agui.lift_erasure is
    'Permits an erased thread to be used from the beginning: its next event gets seq 1. Returns '
    'whether writes to it were refused until now. Requires agui_maintainer. '
    'Errors: UI012 another thread has the same key.';
