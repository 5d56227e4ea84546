create or replace function agui_internal.is_behind(run agui.run, asked agui.projected_interrupt)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return exists (
        select
        from agui_internal.ancestors(
            run,
            (
                select asking.first_seq
                from agui.run as asking
                where asking.thread_key = asked.thread_key and asking.run_no = asked.run_no
            )
        ) as before
        where before.run_no = asked.run_no
    );
end
$$;

comment on function agui_internal.is_behind(agui.run, agui.projected_interrupt) is
    'Whether a run is the one that asks, or continues it, at once or later.';

revoke execute on function agui_internal.is_behind(agui.run, agui.projected_interrupt) from public;
