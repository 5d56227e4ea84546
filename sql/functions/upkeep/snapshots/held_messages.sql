create or replace function agui_internal.held_messages(thread_key uuid, run_no int)
returns int4multirange
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(range_agg(part.message_nos), '{}')
    from agui.snapshot as snapshot
    cross join unnest(snapshot.message_nos) as part (message_nos)
    where snapshot.thread_key = held_messages.thread_key and snapshot.run_no = held_messages.run_no
$$;

comment on function agui_internal.held_messages(uuid, int) is
    'The message versions in the snapshot of a run; none if it has no snapshot.';

revoke execute on function agui_internal.held_messages(uuid, int) from public;
