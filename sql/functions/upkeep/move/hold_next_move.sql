create or replace function agui_internal.hold_next_move()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.wait_for_lock(agui_internal.step_lock_id(), format('node "%s" of the cluster', agui_internal.this_node()), is_shared => true);
    if current_setting('synchronous_commit') = 'off' then
        perform set_config('synchronous_commit', 'on', true);
    end if;
end
$$;

comment on function agui_internal.hold_next_move() is
    'Each step of a move calls it first. The next move begins when the transaction has ended. The commit waits for the '
    'disk: a step that a crash of one node takes back would leave a thread on two nodes, or on none.';

revoke execute on function agui_internal.hold_next_move() from public;
