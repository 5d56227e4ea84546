create or replace function agui_internal.saturated(total numeric)
returns bigint
language sql
immutable
parallel safe
return case when total > 9223372036854775807 then 9223372036854775807 else total::bigint end;

comment on function agui_internal.saturated(numeric) is
    'A sum as a bigint: the largest one stands for sums beyond it.';

revoke execute on function agui_internal.saturated(numeric) from public;
