create or replace function agui_internal.tool_of_call(asked agui.projected_interrupt)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return (
        select call.tool
        from agui.projected_call as call
        where call.thread_key = asked.thread_key and call.call_id = asked.tool_call_id and call.tool is not null
        order by call.run_no
        limit 1
    );
end
$$;

comment on function agui_internal.tool_of_call(agui.projected_interrupt) is
    'The name of the function that the tool call of a question calls; null: it has no call.';

revoke execute on function agui_internal.tool_of_call(agui.projected_interrupt) from public;
