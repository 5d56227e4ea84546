create or replace function agui_internal.run_cursor(ended_at timestamptz, thread_key uuid, run_no int)
returns text
language sql
stable  -- as agui_internal.thread_cursor is
parallel safe
return agui_internal.thread_cursor(ended_at, thread_key) || lpad(to_hex(run_no), 8, '0');

comment on function agui_internal.run_cursor(timestamptz, uuid, int) is
    'The position of an ended run in the lists of the runs of its scope, as text: 40 hexadecimal '
    'digits.';

revoke execute on function agui_internal.run_cursor(timestamptz, uuid, int) from public;
