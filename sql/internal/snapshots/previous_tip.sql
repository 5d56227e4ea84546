create or replace function agui_internal.previous_tip(thread_key uuid, before_no int default null)
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select snapshot.run_no
        from agui.snapshot as snapshot
        join agui.run as run
            on run.thread_key = snapshot.thread_key and run.run_no = snapshot.run_no
        where snapshot.thread_key = previous_tip.thread_key
            and (before_no is null or snapshot.run_no < before_no)
            and run.log_bytes is not null
        order by snapshot.run_no desc
        limit 1
    );
end
$$;

comment on function agui_internal.previous_tip(uuid, int) is
    'The youngest compacted run with a snapshot, before the given one: it may owe its snapshot to having been the tip. Null: none.';

revoke execute on function agui_internal.previous_tip(uuid, int) from public;
