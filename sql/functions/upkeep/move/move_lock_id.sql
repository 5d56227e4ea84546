create or replace function agui_internal.move_lock_id()
returns bigint
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
return hashtextextended('move threads of a cluster of pgagui', 0);

comment on function agui_internal.move_lock_id() is
    'The advisory lock that a session of a mover holds while its move is in progress (agui_internal.begin_move).';

revoke execute on function agui_internal.move_lock_id() from public;
