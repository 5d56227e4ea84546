create or replace function agui_internal.thread_cursor(active_at timestamptz, thread_key uuid)
returns text
language sql
stable  -- as extract is; so it is inlined
parallel safe
-- The half of the key that is the scope's is left out: the caller of agui.threads names the scope.
return lpad(to_hex((extract(epoch from active_at) * 1000000)::bigint), 16, '0') || right(replace(thread_key::text, '-', ''), 16);

comment on function agui_internal.thread_cursor(timestamptz, uuid) is
    'The place of a thread in a list, as the text that agui.threads takes as cursor: microseconds '
    'and half of the key, 32 digits.';

revoke execute on function agui_internal.thread_cursor(timestamptz, uuid) from public;
