create or replace function agui_internal.may_wait(thread_key uuid, run_no int, expires_at timestamptz)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (expires_at <= clock_timestamp()) is not true
        and (select state.status in ('waiting', 'answering') from agui_internal.interrupt_state(thread_key, run_no, expires_at) as state);
end
$$;

comment on function agui_internal.may_wait(uuid, int, timestamptz) is
    'Whether an interrupt waits for an answer, or will if the run in progress fails. A run that continues the run that '
    'asks can make it true again.';

revoke execute on function agui_internal.may_wait(uuid, int, timestamptz) from public;
