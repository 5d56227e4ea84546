create or replace function agui_internal.runs_in_quarantine(thread_key uuid, with_noted boolean default false)
returns int[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Usually the thread has no note, and this is one look-up in an index.
    return array(
        with recursive waiting as (
            select note.run_no
            from agui_internal.job_note as note
            where note.job = 'compact'
                and note.thread_key = runs_in_quarantine.thread_key
                and note.run_no > 0
                and (with_noted or note.next_at > clock_timestamp())
            union
            select child.run_no
            from waiting
            -- The offset keeps the planner from reading all runs of the thread first.
            cross join lateral (
                select run.run_no
                from agui.run as run
                where run.thread_key = runs_in_quarantine.thread_key and run.parent_no = waiting.run_no
                offset 0
            ) as child
        )
        select waiting.run_no from waiting
    );
end
$$;

comment on function agui_internal.runs_in_quarantine(uuid, boolean) is
    'The runs of a thread that compaction postpones because it failed at them or at one of their '
    'ancestors; with_noted: also those that it may retry now.';

revoke execute on function agui_internal.runs_in_quarantine(uuid, boolean) from public;
