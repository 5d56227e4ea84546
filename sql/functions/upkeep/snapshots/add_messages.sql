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
declare
    -- Most threads have none, and to look for each message takes as long as to store it.
    has_parts constant boolean := exists (
        select from agui.input_part as part where part.thread_key = add_messages.thread_key and part.kind = 'message'
    );
begin
    perform agui_internal.own_key(thread_key);
    insert into agui.message_version (thread_key, message_no, part_no, message_id, role, body)
    select
        add_messages.thread_key,
        message.message_no,
        message.part_no,
        coalesce(nullif(message.message_id, ''), agui_internal.json_string_text((agui_internal.json_guard(message.body)::json -> 'id')::text)),
        coalesce(nullif(message.role, ''), agui_internal.json_string_text((agui_internal.json_guard(message.body)::json -> 'role')::text)),
        case when message.part_no is null then message.body::json end
    from (
        select printed.*, case when has_parts then agui_internal.part_of_message(add_messages.thread_key, printed.body) end as part_no
        from (
            select
                added.message_no, added.message_id, added.role,
                case when added.print then agui_internal.fold_patched_body(added.body) else added.body end as body
            from unnest(message_nos, message_ids, roles, bodies, print) as added (message_no, message_id, role, body, print)
        ) as printed
    ) as message;
end
$$;

comment on function agui_internal.add_messages(uuid, int[], text[], text[], text[], boolean[]) is
    'Stores message versions that were folded outside of the database, before the snapshots that '
    'hold them. An empty id or role is read from the message, for those that text cannot contain. '
    'print: the content was patched and is printed as the reducer in SQL does. The caller holds '
    'the row of the thread.';

revoke execute on function agui_internal.add_messages(uuid, int[], text[], text[], text[], boolean[]) from public;
