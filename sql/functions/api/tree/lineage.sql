create or replace function agui.lineage(thread_id text, run_id text default null, scope text default '')
returns setof agui.run_info
language plpgsql
stable
security definer
rows 20
set search_path = pg_catalog, pg_temp
as $$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
begin
    return query
    select
        (row_number() over root_first)::int,
        ancestor.run_id,
        lag(ancestor.run_id) over root_first,
        ancestor.status,
        ancestor.first_seq,
        ancestor.last_seq,
        ancestor.started_at,
        ancestor.ended_at,
        ancestor.run_no,
        (why.ended).error_code,
        (why.ended).error_message,
        (why.ended).stop_reason,
        (why.ended).cut_off_reason
    from agui_internal.ancestors(leaf) as ancestor
    cross join lateral (
        select case
            when ancestor.status not in ('running', 'finished', 'interrupted') then agui_internal.why_ended(ancestor, 1000)
        end as ended
        offset 0
    ) as why
    window root_first as (order by ancestor.run_no)
    order by ancestor.run_no;
end
$$;

comment on function agui.lineage(text, text, text) is
    'Returns the runs from the root to a run (null: to the head), root first. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.lineage(text, text, text) from public;
