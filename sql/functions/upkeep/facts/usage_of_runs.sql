create or replace function agui_internal.usage_of_runs(keys uuid[], run_nos int[])
returns setof agui.projected_usage
language plpgsql
stable
parallel safe
rows 100
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select run.thread_key, run.run_no, entry.*
    from unnest(keys, run_nos) as listed (thread_key, run_no)
    join agui.run as run
        on run.thread_key = listed.thread_key and run.run_no = listed.run_no and run.status <> 'running'
    cross join lateral agui_internal.end_of_run(run) as ending
    cross join lateral agui_internal.usage_entries(
        case
            when json_typeof(ending.event -> 'usage') = 'array' then ending.event -> 'usage'
            when run.status = 'failed' then agui_internal.reported_usage(run)
            else agui_internal.mapped_usage(ending.event)
        end
    ) as entry
    where run.cut_off_reason is null;
end
$$;

comment on function agui_internal.usage_of_runs(uuid[], int[]) is
    'What agui.projected_usage is to say of runs, those in progress left out.';

revoke execute on function agui_internal.usage_of_runs(uuid[], int[]) from public;
