create or replace function agui_internal.delete_unused_messages(thread_key uuid, message_nos int4range[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    unused int4range;
begin
    -- One look-up for each range, as in agui_internal.load_snapshot.
    for unused in
        select unnest(
            (select coalesce(range_agg(part), '{}') from unnest(delete_unused_messages.message_nos) as part)
            - (
                select coalesce(range_agg(part), '{}')
                from agui.snapshot as kept
                cross join unnest(kept.message_nos) as part
                where kept.thread_key = delete_unused_messages.thread_key
            )
        )
    loop
        delete from agui.message_version as message
        where message.thread_key = delete_unused_messages.thread_key
            and message.message_no >= lower(unused) and message.message_no < upper(unused);
    end loop;
end
$$;

comment on function agui_internal.delete_unused_messages(uuid, int4range[]) is
    'Deletes those of the given message versions that no snapshot holds. The caller holds the row '
    'of the thread.';

revoke execute on function agui_internal.delete_unused_messages(uuid, int4range[]) from public;
