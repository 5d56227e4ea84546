create or replace function agui_internal.asking_run(run agui.run)
returns agui.run
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    asking agui.run := run;
begin
    while asking.run_no is not null and agui_internal.keeps_interrupts(asking) loop
        select * into asking
        from agui.run as parent
        where parent.thread_key = asking.thread_key and parent.run_no = asking.parent_no;
    end loop;
    if asking.status = 'interrupted'
        or asking.status in ('failed', 'cut_off') and (
            select finish.interrupts is not null
            from agui_internal.last_finish(asking) as finish
        )
    then
        return asking;
    end if;
    return null;
end
$$;

comment on function agui_internal.asking_run(agui.run) is
    'The run of the lineage of a run whose interrupts a restore of that run has; null: it has none.';

revoke execute on function agui_internal.asking_run(agui.run) from public;
