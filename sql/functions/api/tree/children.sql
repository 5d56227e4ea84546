create or replace function agui.children(thread_id text, run_id text default null, scope text default '')
returns setof agui.run_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
-- A plan of a time when the thread had one run would read all its runs.
set enable_seqscan = off
set jit = off
as $$
declare
    parent agui.run;
    key    uuid;
    depth  int;
begin
    if run_id is not null then
        parent := agui_internal.find_run(thread_id, run_id, scope);
    end if;
    key := coalesce(parent.thread_key, (agui_internal.find_run(thread_id, null, scope)).thread_key);
    depth := 1 + (select count(*) from agui_internal.ancestors(parent));
    return query
    select
        depth, child.run_id, parent.run_id, child.status, child.first_seq, child.last_seq, child.started_at, child.ended_at, child.run_no,
        (why.ended).error_code, (why.ended).error_message, (why.ended).stop_reason, (why.ended).cut_off_reason
    from (
        select of_parent as run
        from agui.run as of_parent
        where of_parent.thread_key = key and of_parent.parent_no = parent.run_no
        union all
        select root
        from agui.run as root
        where parent.run_no is null and root.thread_key = key and root.parent_no is null
    ) as listed
    cross join lateral (select (listed.run).*) as child
    cross join lateral (
        select case
            when child.status not in ('running', 'finished', 'interrupted') then agui_internal.why_ended(listed.run, 1000)
        end as ended
        offset 0
    ) as why
    order by child.run_no;
end
$$;

comment on function agui.children(text, text, text) is
    'Returns the runs that continue from a run, in the order in which they began. Without a run: '
    'the roots of the thread. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.children(text, text, text) from public;
