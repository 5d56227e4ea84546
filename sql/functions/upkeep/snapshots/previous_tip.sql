create or replace function agui_internal.previous_tip(thread_key uuid, before_no int default null)
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- The plan is cached from a time when the thread had no snapshot, and a plan that sorts would read
-- all of them.
set enable_sort = off
set enable_seqscan = off
set jit = off
as $$
begin
    return (
        select snapshot.run_no
        from agui.snapshot as snapshot
        where snapshot.thread_key = previous_tip.thread_key
            and snapshot.run_no < coalesce(before_no, 2147483647)
            and exists (
                select from agui.run as run
                where run.thread_key = snapshot.thread_key and run.run_no = snapshot.run_no and run.log_bytes is not null
                offset 0
            )
        order by snapshot.run_no desc
        limit 1
    );
end
$$;

comment on function agui_internal.previous_tip(uuid, int) is
    'The youngest compacted run with a snapshot before the given one. It may have its snapshot '
    'only because it was the tip. Null: none.';

revoke execute on function agui_internal.previous_tip(uuid, int) from public;
