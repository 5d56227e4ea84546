create or replace function agui_internal.snapshot_numbers(thread_key uuid, run_no int)
returns int[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return array(
        select numbers.number
        from agui.snapshot as snapshot
        cross join unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
        cross join generate_series(lower(part.message_nos), upper(part.message_nos) - 1) as numbers (number)
        where snapshot.thread_key = snapshot_numbers.thread_key and snapshot.run_no = snapshot_numbers.run_no
        order by part.position, numbers.number
    );
end
$$;

comment on function agui_internal.snapshot_numbers(uuid, int) is 'The message versions of a snapshot, in order.';

revoke execute on function agui_internal.snapshot_numbers(uuid, int) from public;
