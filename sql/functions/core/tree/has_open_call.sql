create or replace function agui_internal.has_open_call(head agui.run)
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
        from agui.projected_interrupt as asked
        where asked.thread_key = head.thread_key and asked.is_open and asked.is_call
    )
    and agui_internal.is_projected(head);
end
$$;

comment on function agui_internal.has_open_call(agui.run) is
    'Whether tool calls without a result wait after the head of a thread, which has ended '
    '(agui_internal.interrupt_state).';

revoke execute on function agui_internal.has_open_call(agui.run) from public;
