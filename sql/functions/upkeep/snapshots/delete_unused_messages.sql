create or replace function agui_internal.delete_unused_messages(thread_key uuid, message_nos int4range[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from agui.message_version as message
    using unnest(delete_unused_messages.message_nos) as part (message_nos)
    where message.thread_key = delete_unused_messages.thread_key
        and message.message_no >= lower(part.message_nos) and message.message_no < upper(part.message_nos)
        and not message.message_no <@ (
            select coalesce(range_agg(kept_part.message_nos), '{}')
            from agui.snapshot as kept
            cross join unnest(kept.message_nos) as kept_part (message_nos)
            where kept.thread_key = delete_unused_messages.thread_key
        );
end
$$;

comment on function agui_internal.delete_unused_messages(uuid, int4range[]) is
    'Deletes those of the given message versions that no snapshot holds. The caller holds the row '
    'of the thread.';

revoke execute on function agui_internal.delete_unused_messages(uuid, int4range[]) from public;
