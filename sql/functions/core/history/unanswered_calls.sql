create or replace function agui_internal.unanswered_calls(run agui.run)
returns text[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce((
        select array_agg(call.id order by call.seq)
        from (
            select event.call_id as id, min(event.seq) as seq, bool_or(event.is_result) as has_result
            from agui_internal.events_of_calls(array[run]) as event
            where event.ending is null and event.call_id is not null and event.has_effect and (event.is_result or event.name is not null)
            group by 1
        ) as call
        where not call.has_result
    ), '{}');
end
$$;

comment on function agui_internal.unanswered_calls(agui.run) is
    'The ids of the tool calls that a run which has ended began, and gave no result, in the order in '
    'which they began. Reads the events of the run.';

revoke execute on function agui_internal.unanswered_calls(agui.run) from public;
