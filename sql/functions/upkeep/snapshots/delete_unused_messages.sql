create or replace function agui_internal.delete_unused_messages(thread_key uuid, message_nos int4range[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
-- As in agui_internal.previous_tip.
set enable_sort = off
set enable_seqscan = off
set jit = off
as $$
declare
    unused   int4multirange := (select range_agg(part) from unnest(message_nos) as part);
    kept_nos int4range[];
    part     int4range;
begin
    if unused is null then
        return;
    end if;
    -- Usually the newest snapshots hold all of them, and the others are not read.
    for kept_nos in
        select kept.message_nos
        from agui.snapshot as kept
        where kept.thread_key = delete_unused_messages.thread_key
        order by kept.run_no desc
    loop
        unused := unused - (select coalesce(range_agg(held), '{}') from unnest(kept_nos) as held);
        if isempty(unused) then
            return;
        end if;
    end loop;
    -- One look-up for each range, as in agui_internal.load_snapshot.
    foreach part in array array(select unnest(unused)) loop
        delete from agui.message_version as message
        where message.thread_key = delete_unused_messages.thread_key
            and message.message_no >= lower(part) and message.message_no < upper(part);
    end loop;
end
$$;

comment on function agui_internal.delete_unused_messages(uuid, int4range[]) is
    'Deletes those of the given message versions that no snapshot holds. The caller holds the row '
    'of the thread.';

revoke execute on function agui_internal.delete_unused_messages(uuid, int4range[]) from public;
