create or replace function agui.messages(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    scope     text default ''
)
returns setof agui.message_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    fold agui_internal.fold := agui_internal.fold_at(agui_internal.find_run(thread_id, run_id, scope), at_seq);
begin
    return query
    select message.position::int, message.message_id, message.role, message.body::json
    from unnest(fold.message_ids, fold.roles, fold.bodies) with ordinality
        as message (message_id, role, body, position)
    order by message.position;
end
$$;

comment on function agui.messages(text, text, bigint, text) is
    'The conversation as it stood after a run (null: the head) or, with at_seq, after that event of its lineage. '
    'UI001: unknown thread, UI002: unknown run.';

revoke execute on function agui.messages(text, text, bigint, text) from public;
