create or replace procedure agui_internal.split_inputs(max_time interval default null)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    next    pg_catalog.record;  -- the next inputs, of which notes are committed
    busy    pg_catalog.uuid[] := '{}';
begin
    set local search_path = pg_catalog, pg_temp;
    if not exists (select from agui.run_input where split_at is null) then
        return;  -- as usual
    end if;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    select null::uuid as thread_key, null::int[] as run_nos into next;
    loop
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('split')) then
            -- the same job is in progress elsewhere
            perform agui_internal.take_back_attempt('split', next.thread_key, next.run_nos);
            exit;
        end if;
        perform agui_internal.begin_step();
        if next.thread_key is not null then
            begin
                if agui_internal.split_thread_inputs(next.thread_key, next.run_nos) then
                    perform agui_internal.note_success('split', next.thread_key, next.run_nos);
                else
                    perform agui_internal.take_back_attempt('split', next.thread_key, next.run_nos);
                    busy := busy || next.thread_key;
                end if;
            exception
                when others then
                    raise warning 'the inputs of the thread with key %, run numbers %, stay whole for now: %', next.thread_key, next.run_nos, sqlerrm;
                    if not agui_internal.note_failure('split', next.thread_key, sqlstate, sqlerrm, next.run_nos) then
                        busy := busy || next.thread_key;
                    end if;
            end;
            exit when pg_catalog.clock_timestamp() >= stop_at;
        end if;
        select * into next from agui_internal.next_to_split(busy);
        exit when next.thread_key is null;
        perform agui_internal.note_attempt('split', next.thread_key, next.run_nos);
        commit;
        set local search_path = pg_catalog, pg_temp;
    end loop;
    commit;
end
$$;

comment on procedure agui_internal.split_inputs(interval) is
    'Stores inputs in parts, those of a thread in a step, and commits after each step. Stops after '
    'max_time (null: no limit), or in time before statement_timeout; one step is always done. '
    'Inputs that fail are listed in agui.quarantine and retried with backoff. Does nothing while '
    'another call is in progress. Call it outside a transaction block.';

revoke execute on procedure agui_internal.split_inputs(interval) from public;
