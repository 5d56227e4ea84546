create or replace procedure agui.project(max_time interval default null)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    blocked pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
    failed  pg_catalog.int4;
    runs    pg_catalog.int4;
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.project does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    perform agui_internal.job_lock_id('project');  -- fails if the role sees no runs
    while agui_internal.apply_rules() operator(pg_catalog.>) 0 loop
        commit;
        set local search_path = pg_catalog, pg_temp;
        exit when pg_catalog.clock_timestamp() operator(pg_catalog.>=) stop_at;
    end loop;
    loop
        perform agui_internal.begin_step();
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('project')) then
            blocked := agui_internal.job_lock_problem('project');
            if blocked is null then
                raise notice 'agui.project stops: another agui.project is in progress';
            end if;
            exit;
        end if;
        runs := agui_internal.project_step();
        if runs = 0 then
            runs := agui_internal.settle_calls();
        end if;
        commit;
        set local search_path = pg_catalog, pg_temp;
        exit when runs = 0 or pg_catalog.clock_timestamp() >= stop_at;
    end loop;
    perform agui_internal.refuse_blocked('agui.project', blocked);
    failed := (select pg_catalog.count(*) from agui_internal.job_note as note where note.job = 'project' and note.error is not null);
    if failed > 0 then
        raise warning 'agui.project: % runs have no facts yet; agui.quarantine says why', failed;
    end if;
    commit;
end
$$;

comment on procedure agui.project(interval) is
    'Keeps the facts about runs (agui.run_fact, agui.tool_fact, agui.interrupt_fact, '
    'agui.usage_fact): reads the runs that have ended or changed since the last call, in groups, '
    'and commits after each. The first call reads all runs. Stops after max_time (null: no limit), '
    'or in time before statement_timeout; one group is always done. A run that fails is listed in '
    'agui.quarantine and retried with backoff; the others are done. Does nothing, with a notice, on '
    'a standby and while another call is in progress. Call it outside a transaction block. Errors: '
    '42501 the role has not all scopes, 55P03 another role holds the lock of the job.';

revoke execute on procedure agui.project(interval) from public;
