-- It leaves held threads.
-- role: maintainer; route: worker; never: UI025
create or replace procedure agui.apply_retention(max_threads int default null, max_time interval default null)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    due     agui_internal.due_thread;
    page    agui_internal.due_thread[];
    after   pg_catalog.uuid;
    threads int := 0;
    pass    int := 1;
    busy    agui_internal.due_thread[] := '{}';  -- what other transactions hold, for the second pass
    failed  pg_catalog.uuid[] := '{}';
    failure pg_catalog.text;
    code    pg_catalog.text;
    blocked pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.apply_retention does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    page := '{}';
    loop
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('retain')) then
            blocked := agui_internal.job_lock_problem('retain');
            if blocked is null then
                raise notice 'agui.apply_retention stops: another agui.apply_retention is in progress';
            end if;
            exit;
        end if;
        exit when threads >= max_threads or pg_catalog.clock_timestamp() >= stop_at;

        if pg_catalog.cardinality(page) = 0 and pass = 1 then
            page := array(select listed from agui_internal.threads_due(after, 100) as listed);
            if pg_catalog.cardinality(page) = 0 then
                pass := 2;
                page := busy;
            end if;
        end if;
        exit when pg_catalog.cardinality(page) = 0;
        due := page[1];
        page := page[2 :];
        after := due.thread_key;
        continue when due.kept_because is not null;
        begin
            if agui_internal.retain_thread(due.thread_key, due.action) then
                threads := threads + 1;
            end if;
        exception
            when others then
                if sqlstate = '55P03' then
                    busy := case when pass = 1 then busy || due else busy end;
                else
                    raise warning 'agui.apply_retention: %, thread with key %: %', due.action, due.thread_key, sqlerrm;
                    failed := failed || due.thread_key;
                    failure := coalesce(failure, sqlerrm);
                    code := coalesce(code, sqlstate);
                end if;
        end;
        commit;
        set local search_path = pg_catalog, pg_temp;
    end loop;
    commit;
    set local search_path = pg_catalog, pg_temp;

    perform agui_internal.refuse_blocked('agui.apply_retention', blocked);
    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('agui.apply_retention: %s actions failed: %s', pg_catalog.cardinality(failed), failure),
            detail = 'The keys of their threads: ' || pg_catalog.array_to_string(failed, ', ');
    end if;
    commit;
end
$$;

comment on procedure agui.apply_retention is
    'Does what the rules of agui.set_retention say, to the threads for which it is due: archives '
    'them, removes their checkpoints, or erases them as agui.erase does. Threads that are held are '
    'only archived; threads in progress are left. Commits after each thread. Stops after '
    'max_threads actions or max_time (null: no limit), or in time before statement_timeout. If a '
    'thread is locked by another transaction or fails, the others are still done. Call it outside a '
    'transaction block. Requires agui_maintainer.';

-- role: maintainer
create or replace function agui.lift_hold(thread_id text, scope text default '')
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.key_to_change(thread_id, scope);
begin
    delete from agui.hold as held where held.thread_key = key;
    return found;
end
$$;

comment on function agui.lift_hold is
    'Permits a held thread to be erased again. Returns whether it was held. Requires '
    'agui_maintainer. '
    'Errors: UI012 another thread has the same key.';

-- role: maintainer; route: each node
create or replace function agui.remove_retention(action text, scope text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_foreign_scope(scope, 'remove a rule of retention');
    delete from agui.retention as rule
    where rule.action = remove_retention.action
        and rule.scope = coalesce(remove_retention.scope, '')
        and rule.is_all = (remove_retention.scope is null);
    return found;
end
$$;

comment on function agui.remove_retention is
    'Removes a rule of agui.set_retention, of a scope or (null) for all scopes. Returns whether there '
    'was one. Requires agui_maintainer.';

-- role: maintainer
create or replace function agui.set_hold(thread_id text, reason text, scope text default '')
returns agui.hold
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key  constant uuid := agui_internal.key_to_change(thread_id, scope);
    held agui.hold;
begin
    if reason is null or reason = '' then
        raise exception using
            errcode = '22023',
            message = format('thread "%s": a hold needs a reason', thread_id);
    end if;
    -- An erasure in progress ends first.
    perform from agui.thread as thread where thread.thread_key = key for key share;
    if not found then
        raise exception using
            errcode = 'UI001',
            message = format('thread "%s" is unknown%s', thread_id, case when scope <> '' then format(' in scope "%s"', scope) else '' end),
            hint = 'Is it in another scope?';
    end if;
    insert into agui.hold (thread_key, reason)
    values (key, set_hold.reason)
    on conflict on constraint hold_pkey do update
    set reason = excluded.reason
    returning * into held;
    return held;
end
$$;

comment on function agui.set_hold is
    'Holds a thread: it cannot be erased, and agui.apply_retention only archives it, until '
    'agui.lift_hold. A second call replaces the reason. Requires agui_maintainer. '
    'Errors: 22023 no reason, UI001 unknown thread, UI012 another thread has the same key.';

-- role: maintainer; route: each node
create or replace function agui.set_retention(action text, older_than interval, scope text default null)
returns agui.retention
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    rule agui.retention;
begin
    perform agui_internal.refuse_foreign_scope(scope, 'set a rule of retention');
    if action is null or action not in ('archive', 'erase', 'remove_checkpoints') then
        raise exception using
            errcode = '22023',
            message = format('"%s" is no action of retention', action),
            hint = 'There are archive, erase and remove_checkpoints.';
    end if;
    if older_than <= interval '0' then
        raise exception using
            errcode = '22023',
            message = 'older_than must be more than 0: otherwise threads that are in use would be affected';
    end if;
    insert into agui.retention (scope, is_all, action, older_than)
    values (coalesce(set_retention.scope, ''), set_retention.scope is null, set_retention.action, set_retention.older_than)
    on conflict on constraint retention_pkey do update
    set older_than = excluded.older_than, set_at = excluded.set_at, set_by = excluded.set_by
    returning * into rule;
    return rule;
end
$$;

comment on function agui.set_retention is
    'Sets a rule: what agui.apply_retention does to the threads of a scope (null: of all scopes) in '
    'which nothing was appended or saved for older_than. action is archive (lists leave the thread '
    'out), remove_checkpoints (the log stays) or erase. The rule of a scope comes before the rule '
    'for all scopes; older_than null means never, so it exempts a scope. Nothing happens before '
    'agui.apply_retention is called. Requires agui_maintainer. '
    'Errors: 22023 unknown action, or not more than 0.';
