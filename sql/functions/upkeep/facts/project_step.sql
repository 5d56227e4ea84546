create or replace function agui_internal.project_step()
returns int
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Of a step, which is a transaction: some ten milliseconds.
    most_runs constant int := 200;
    first_key constant uuid := '00000000-0000-0000-0000-000000000000';
    epoch     constant text := agui_internal.epoch();
    horizon   constant xid8 := pg_snapshot_xmin(pg_current_snapshot());
    state     agui_internal.projection;
    runs      record;
begin
    perform agui_internal.refuse_unless_operator('compute facts');
    select * into state from agui_internal.projection for update;
    if state.epoch is distinct from epoch then
        insert into agui_internal.projection as kept (epoch, changed_in, thread_key, run_no, scan_key, scan_no)
        values (epoch, horizon, first_key, 0, first_key, 0)
        on conflict (is_only) do update
        set epoch = excluded.epoch, changed_in = excluded.changed_in, thread_key = excluded.thread_key, run_no = excluded.run_no,
            scan_key = excluded.scan_key, scan_no = excluded.scan_no
        returning * into state;
    end if;

    select array_agg(note.thread_key) as keys, array_agg(note.run_no) as run_nos into runs
    from (
        select *
        from agui_internal.job_note as failed
        where failed.job = 'project' and (failed.next_at is null or failed.next_at <= clock_timestamp())
        limit most_runs
    ) as note;
    if runs.keys is not null then
        for place in 1 .. cardinality(runs.keys) loop
            perform agui_internal.project_alone(runs.keys[place], runs.run_nos[place]);
        end loop;
        return cardinality(runs.keys);
    end if;

    if state.scan_key is not null then
        select array_agg(run.thread_key order by run.thread_key, run.run_no) as keys, array_agg(run.run_no order by run.thread_key, run.run_no) as run_nos
        into runs
        from (
            select every_run.thread_key, every_run.run_no
            from agui.run as every_run
            where (every_run.thread_key, every_run.run_no) > (state.scan_key, state.scan_no)
            order by every_run.thread_key, every_run.run_no
            limit most_runs
        ) as run;
        update agui_internal.projection
        set scan_key = runs.keys[cardinality(runs.keys)], scan_no = runs.run_nos[cardinality(runs.keys)], projected_at = clock_timestamp();
    else
        select
            array_agg(run.thread_key order by run.changed_in, run.thread_key, run.run_no) as keys,
            array_agg(run.run_no order by run.changed_in, run.thread_key, run.run_no) as run_nos,
            max(run.changed_in) as changed_in
        into runs
        from agui_internal.changed_after(
            state.changed_in, state.thread_key, state.run_no, most_runs, first_key, 'ffffffff-ffff-ffff-ffff-ffffffffffff'
        ) as run;
        if runs.keys is null then
            return agui_internal.settle_interrupts();
        end if;
        update agui_internal.projection
        set changed_in = runs.changed_in, thread_key = runs.keys[cardinality(runs.keys)], run_no = runs.run_nos[cardinality(runs.keys)],
            projected_at = clock_timestamp();
    end if;

    if runs.keys is null then
        return agui_internal.project_step();  -- all runs are read, now what was changed
    end if;
    begin
        perform agui_internal.project_runs(runs.keys, runs.run_nos);
    exception
        when others then
            for place in 1 .. cardinality(runs.keys) loop
                perform agui_internal.project_alone(runs.keys[place], runs.run_nos[place]);
            end loop;
    end;
    perform agui_internal.settle_interrupts();
    return cardinality(runs.keys);
end
$$;

comment on function agui_internal.project_step() is
    'Projects the next 200 runs or so: those that failed and are due, then all runs if the job has '
    'not read them yet, then those that were changed. Then settles interrupts. Returns how many; 0: there '
    'are none.';

revoke execute on function agui_internal.project_step() from public;
