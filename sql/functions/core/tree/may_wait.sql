create or replace function agui_internal.may_wait(asked agui.projected_interrupt)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (asked.expires_at <= clock_timestamp()) is not true
        and (select state.status in ('waiting', 'answering') from agui_internal.interrupt_state(asked) as state);
end
$$;

comment on function agui_internal.may_wait(agui.projected_interrupt) is
    'Whether an interrupt waits for an answer, or will if the run in progress fails. A run that continues the run that '
    'asks can make it true again. Of calls agui_internal.settle_calls finds it.';

revoke execute on function agui_internal.may_wait(agui.projected_interrupt) from public;
