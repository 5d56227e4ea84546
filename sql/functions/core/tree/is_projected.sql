create or replace function agui_internal.is_projected(run agui.run)
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
        from agui.projected_run as projected
        where projected.thread_key = run.thread_key and projected.run_no = run.run_no and projected.changed_in is not distinct from run.changed_in
    );
end
$$;

comment on function agui_internal.is_projected(agui.run) is
    'Whether agui.project() has read a run as it is now.';

revoke execute on function agui_internal.is_projected(agui.run) from public;
