create or replace function agui_internal.stop_time(wanted timestamptz)
returns timestamptz
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    -- A call of a procedure is one statement, however often it commits. A fifth of its time is left
    -- to the step in progress.
    select least(wanted, statement_timestamp() + nullif(current_setting('statement_timeout')::interval, '0') * 0.8)
$$;

comment on function agui_internal.stop_time(timestamptz) is
    'When a call of a job begins no further step: at this time (null: no limit), or before '
    'statement_timeout cancels the call.';

revoke execute on function agui_internal.stop_time(timestamptz) from public;
