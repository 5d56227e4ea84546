create or replace function agui_internal.begin_move(token bigint)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    if not pg_try_advisory_lock(agui_internal.move_lock_id()) then
        return false;
    end if;
    perform pg_advisory_lock(token);
    -- Behind this lock no step of an earlier move is left. Those that begin later are refused.
    perform agui_internal.wait_for_lock(agui_internal.step_lock_id(), format('node "%s" of the cluster', agui_internal.this_node()));
    return true;
end
$$;

comment on function agui_internal.begin_move(bigint) is
    'Begins a move on this node, for as long as the session holds its locks (pg_advisory_unlock_all). token is a '
    'random number that the steps of the move name (agui_internal.begin_move_step). Waits for steps of an earlier '
    'move that were not committed yet. Returns false if another move is in progress. 55P03: such a step '
    'is still not committed.';

revoke execute on function agui_internal.begin_move(bigint) from public;
