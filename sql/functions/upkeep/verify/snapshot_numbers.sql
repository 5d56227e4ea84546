create or replace function agui_internal.snapshot_numbers(thread_key uuid, run_no int, expected int)
returns int[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Damaged ranges may have any length.
    if (
        select coalesce(sum(upper(part.message_nos)::bigint - lower(part.message_nos)), 0)
        from agui.snapshot as snapshot
        cross join unnest(snapshot.message_nos) as part (message_nos)
        where snapshot.thread_key = snapshot_numbers.thread_key and snapshot.run_no = snapshot_numbers.run_no
    ) <> expected
        or exists (
            select
            from agui.snapshot as snapshot
            cross join unnest(snapshot.message_nos) as part (message_nos)
            where snapshot.thread_key = snapshot_numbers.thread_key
                and snapshot.run_no = snapshot_numbers.run_no
                and (lower_inf(part.message_nos) or upper_inf(part.message_nos))
        )
    then
        return null;
    end if;
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

comment on function agui_internal.snapshot_numbers(uuid, int, int) is
    'The message versions of a snapshot, in order; null if their number differs from the expected '
    'one.';

revoke execute on function agui_internal.snapshot_numbers(uuid, int, int) from public;
