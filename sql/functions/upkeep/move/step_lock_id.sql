create or replace function agui_internal.step_lock_id()
returns bigint
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
return hashtextextended('move threads of a cluster of pgagui', 1);

comment on function agui_internal.step_lock_id() is
    'The advisory lock that the steps of moves share until their transactions end, and that a move takes '
    'alone before it begins.';

revoke execute on function agui_internal.step_lock_id() from public;
