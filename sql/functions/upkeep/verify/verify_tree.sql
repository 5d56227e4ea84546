create or replace function agui_internal.verify_tree(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
        with run as (
            select
                run.thread_key, run.run_no, run.run_id, run.parent_no, run.status, run.first_seq, run.last_seq,
                coalesce(lag(run.run_no) over in_order, 0) + 1 as expected_no,
                lag(run.run_id) over in_order as previous_id,
                lag(run.first_seq) over in_order as previous_first_seq,
                count(*) over (partition by run.run_id) as runs_with_id
            from agui.run as run
            where run.thread_key = verify_tree.thread_key
            window in_order as (order by run.run_no)
        )
        select run.run_id, problem.text, 'damage'
        from run
        left join agui.run as parent
            on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        left join lateral (
            -- The tree can contain a circle only if a parent is not older; "union" follows it once.
            with recursive ancestor as (
                select parent.run_no, parent.parent_no
                where parent.run_no >= run.run_no
                union
                select older.run_no, older.parent_no
                from ancestor
                join agui.run as older
                    on older.thread_key = run.thread_key and older.run_no = ancestor.parent_no
            )
            select exists (select from ancestor where ancestor.parent_no = run.run_no)
        ) as circle (is_closed) on true
        cross join lateral (
            values
                (run.run_no <> run.expected_no,
                    format('the run has the number %s, not %s: runs are missing', run.run_no, run.expected_no)),
                (run.runs_with_id > 1,
                    format('run number %s has the id of another run of the thread', run.run_no)),
                (run.first_seq <= run.previous_first_seq,
                    format('the run begins at seq %s, which is not after the run "%s" began', run.first_seq, run.previous_id)),
                (run.status not in ('running', 'finished', 'interrupted', 'cancelled', 'failed', 'cut_off'),
                    format('the run has an unknown status, "%s"', run.status)),
                (run.parent_no is not null and parent.run_no is null,
                    format('the run''s parent, run number %s, does not exist', run.parent_no)),
                (circle.is_closed,
                    format('the run is its own ancestor: from its parent "%s" the tree leads back to it', parent.run_id)),
                (parent.run_no >= run.run_no and not circle.is_closed,
                    format('the run''s parent "%s" is not older than the run', parent.run_id)),
                (parent.run_no < run.run_no and (parent.status = 'running' or parent.last_seq is null or parent.last_seq >= run.first_seq),
                    format('the run began before its parent "%s" had ended', parent.run_id))
        ) as problem (is_there, text)
        where problem.is_there
        order by run.run_no;
end
$$;

comment on function agui_internal.verify_tree(uuid) is
    'The damage of the tree of the runs of a thread: numbers, ids, parents, cycles.';

revoke execute on function agui_internal.verify_tree(uuid) from public;
