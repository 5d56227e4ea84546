create or replace function agui.runs(thread_id text, scope text default '')
returns setof agui.run_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    head   agui.run := agui_internal.find_run(thread_id, null, scope);
    depths int[] := array_fill(0, array[coalesce(head.run_no, 0)]);
    item   record;
    info   agui.run_info;
    why    agui_internal.run_end;
begin
    -- Parents come before their children, so a single pass in the order of run_no has the depth of
    -- every parent.
    for item in
        select run, run.*, parent.run_id as parent_run_id
        from agui.run as run
        left join agui.run as parent
            on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        where run.thread_key = head.thread_key and run.run_no <= head.run_no
        order by run.run_no
    loop
        depths[item.run_no] := coalesce(depths[item.parent_no], 0) + 1;
        why := case when item.status not in ('running', 'finished', 'interrupted') then agui_internal.why_ended(item.run, 1000) end;
        info := row(
            depths[item.run_no], item.run_id, item.parent_run_id, item.status,
            item.first_seq, item.last_seq, item.started_at, item.ended_at, item.run_no,
            why.error_code, why.error_message, why.stop_reason, why.cut_off_reason
        );
        return next info;
    end loop;
end
$$;

comment on function agui.runs(text, text) is
    'Returns all runs of a thread, its tree, in the order in which they began. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key.';

revoke execute on function agui.runs(text, text) from public;
