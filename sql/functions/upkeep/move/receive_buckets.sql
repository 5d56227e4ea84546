create or replace function agui_internal.receive_buckets(map json, elsewhere json, erasures json)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('change the map of the cluster');
    perform agui_internal.hold_next_move();
    perform agui_internal.refuse_unless_node('receive_buckets');
    insert into agui_internal.moved_thread as known
    select given.* from json_populate_recordset(null::agui_internal.moved_thread, elsewhere) as given
    on conflict (thread_key) do nothing;
    -- Without what readers of changes need: they read the erasure where it was.
    insert into agui.erasure as known (erased_key, erased_at, erased_by, reason, runs, events, allowed_at, allowed_by)
    select given.erased_key, given.erased_at, given.erased_by, given.reason, given.runs, given.events, given.allowed_at, given.allowed_by
    from json_populate_recordset(null::agui.erasure, erasures) as given
    on conflict (erased_key, erased_at) do update
    set allowed_at = excluded.allowed_at, allowed_by = excluded.allowed_by
    where known.allowed_at is null and excluded.allowed_at is not null;
    perform agui_internal.set_buckets(map);
end
$$;

comment on function agui_internal.receive_buckets(json, json, json) is
    'The end of a move of buckets, on the node that gets them: takes the newer buckets of a map '
    '(agui.cluster_map) over, after the threads of them that are on other nodes '
    '(agui_internal.threads_elsewhere), and the tombstones (rows of agui.erasure) of the node that had '
    'them, so that what was erased there is refused here. All nodes have one salt. 55000: the database '
    'is no node.';

revoke execute on function agui_internal.receive_buckets(json, json, json) from public;
