create or replace function agui.messages(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns setof agui.message_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    fold agui_internal.fold := agui_internal.fold_at(agui_internal.find_run(thread_id, run_id, scope), at_seq, at_time);
begin
    return query
    select message.position::int, message.message_id, message.role, message.body::json
    from unnest(fold.message_ids, fold.roles, fold.bodies) with ordinality
        as message (message_id, role, body, position)
    order by message.position;
end
$$;

comment on function agui.messages(text, text, bigint, timestamptz, text) is
    'Returns the messages of a conversation after a run (null: the head) or, for a point in the '
    'past, after event at_seq of its lineage or at at_time, whichever is earlier. Before the first '
    'event there are none. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.messages(text, text, bigint, timestamptz, text) from public;
