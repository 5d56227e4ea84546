create or replace function agui.branches(thread_id text, scope text default '')
returns setof agui.branch
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    head   agui.run := agui_internal.find_run(thread_id, null, scope);
    depths int[] := array_fill(0, array[coalesce(head.run_no, 0)]);
    forks  int[] := array_fill(null::int, array[coalesce(head.run_no, 0)]);
    item   record;
    branch agui.branch;
begin
    -- Parents come before their children, so a single pass in the order of run_no has depth and
    -- last fork of every parent.
    for item in
        with child_count as (
            select run.parent_no as run_no, count(*) as n
            from agui.run as run
            where run.thread_key = head.thread_key and run.run_no <= head.run_no
            group by run.parent_no
        )
        select run.*, coalesce(child_count.n, 0) as children, coalesce(siblings.n, 0) as children_of_parent
        from agui.run as run
        left join child_count on child_count.run_no = run.run_no
        left join child_count as siblings on siblings.run_no = run.parent_no
        where run.thread_key = head.thread_key and run.run_no <= head.run_no
        order by run.run_no
    loop
        depths[item.run_no] := coalesce(depths[item.parent_no], 0) + 1;
        forks[item.run_no] := case when item.children_of_parent > 1 then item.parent_no else forks[item.parent_no] end;
        if item.children = 0 then
            branch.run_id := item.run_id;
            branch.runs := depths[item.run_no];
            select run.run_id into branch.forked_from
            from agui.run as run
            where run.thread_key = head.thread_key and run.run_no = forks[item.run_no];
            branch.status := item.status;
            branch.last_seq := item.last_seq;
            branch.is_head := item.run_no = head.run_no;
            return next branch;
        end if;
    end loop;
end
$$;

comment on function agui.branches(text, text) is
    'Returns the branches of a thread, one row for each leaf of its tree, in the order in which '
    'the leaves began. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key.';

revoke execute on function agui.branches(text, text) from public;
