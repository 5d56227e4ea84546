create or replace function agui_internal.begin_move_step(token bigint)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    perform agui_internal.hold_next_move();
    -- Behind the lock of steps: a move that begins now waits for this one.
    if not exists (
        select
        from pg_locks as held
        where held.locktype = 'advisory' and held.mode = 'ExclusiveLock' and held.granted
            and held.database = (select oid from pg_database where datname = current_database())
            and held.objsubid = 1
            and (held.classid::bigint << 32 | held.objid::bigint) in (agui_internal.move_lock_id(), begin_move_step.token)
        group by held.pid
        having count(*) = 2
    ) then
        raise exception using
            errcode = '55000',
            message = format('the move has lost the lock that keeps other moves away from node "%s"', agui_internal.this_node()),
            hint = 'Move again: that finishes what this move has left.';
    end if;
end
$$;

comment on function agui_internal.begin_move_step(bigint) is
    'Begins a step in this transaction, if the move that has this token (agui_internal.begin_move) is still '
    'in progress. So a step that comes late changes nothing that a later move has looked at. 55000: the move has lost '
    'its lock.';

revoke execute on function agui_internal.begin_move_step(bigint) from public;
