create or replace function agui_internal.add_messages(
    thread_key  uuid,
    message_nos int[],
    message_ids text[],
    roles       text[],
    bodies      text[],
    print       boolean[]
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    insert into agui.message (thread_key, message_no, message_id, role, body)
    select
        add_messages.thread_key,
        added.message_no,
        coalesce(nullif(added.message_id, ''), agui_internal.json_string_text((agui_internal.json_guard(added.body)::json -> 'id')::text)),
        coalesce(nullif(added.role, ''), agui_internal.json_string_text((agui_internal.json_guard(added.body)::json -> 'role')::text)),
        case when added.print then agui_internal.fold_patched_body(added.body) else added.body end::json
    from unnest(message_nos, message_ids, roles, bodies, print) as added (message_no, message_id, role, body, print);
end
$$;

comment on function agui_internal.add_messages(uuid, int[], text[], text[], text[], boolean[]) is
    'Stores message versions that were folded outside of the database, before the snapshots that '
    'hold them. An empty id or role is read from the message, for those that text cannot contain. '
    'print: the content was patched and is printed as the reducer in SQL does. The caller holds '
    'the row of the thread.';

revoke execute on function agui_internal.add_messages(uuid, int[], text[], text[], text[], boolean[]) from public;
