create or replace function agui_internal.next_to_compact(thread_key uuid, due_by timestamptz)
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Parents before children. A parent has ended before its children, so it is due when they are.
    return (
        select run.run_no
        from agui.run as run
        where run.thread_key = next_to_compact.thread_key
            and run.log_bytes is null
            and run.status <> 'running'
            and run.ended_at <= due_by
        order by run.run_no
        limit 1
    );
end
$$;

comment on function agui_internal.next_to_compact(uuid, timestamptz) is
    'The next run of a thread that compaction has to process, of those that ended at due_by at the latest; null when there is none.';

revoke execute on function agui_internal.next_to_compact(uuid, timestamptz) from public;
