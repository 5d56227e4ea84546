-- The one place that says which tool call an event of the log names. A batch is opened once for its
-- events, and few of these are parsed.
create or replace function agui_internal.events_of_calls(runs agui.run[], until bigint default null)
returns setof agui_internal.call_event
language plpgsql
stable
parallel safe
rows 1000
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    call_types constant text := 'TOOL_CALL_';  -- what they begin with
    results    constant text[] := agui_internal.event_types('add result');
    of_calls   constant text[] := results || agui_internal.event_types('start tool', 'continue tool', 'end tool', 'chunk tool');
begin
    return query
    select
        told.thread_key,
        told.run_no,
        told.seq,
        told.at,
        member.type,
        agui_internal.json_string_text(member."toolCallId"::text),
        agui_internal.json_string_text(member."toolCallName"::text),
        member.delta,
        member.content,
        member.error,
        member.type = any (results),
        told.has_effect,
        case when told.is_end then told.event end
    from (
        select
            run.thread_key,
            run.run_no,
            batch.first_seq + element.position - 1 as seq,
            agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position]) as at,
            -- RUN_ERROR is the end of what has an effect.
            run.status <> 'failed' or batch.first_seq + element.position - 1 <= run.end_seq as has_effect,
            batch.first_seq + element.position - 1 is not distinct from run.end_seq as is_end,
            agui_internal.json_guarded(element.value) as event
        from unnest(runs) as run
        cross join lateral (
            select stored.first_seq, stored.recorded_at, stored.earlier_us, stored.events
            from agui.batch as stored
            where stored.thread_key = run.thread_key
                and stored.run_no = run.run_no
                and stored.first_seq between run.first_seq and least(run.last_seq, coalesce(until, 9223372036854775807))
                and (run.end_seq between stored.first_seq and stored.first_seq + stored.n - 1 or agui_internal.mentions_type(stored.events::text, call_types))
            offset 0
        ) as batch
        cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
        where (batch.first_seq + element.position - 1 = run.end_seq or agui_internal.mentions_type(element.value::text, call_types))
            and batch.first_seq + element.position - 1 <= coalesce(until, 9223372036854775807)
    ) as told
    cross join lateral json_to_record(told.event) as member (
        type text, "toolCallId" json, "toolCallName" json, delta json, content json, error json
    )
    where told.is_end or member.type = any (of_calls);
end
$$;

comment on function agui_internal.events_of_calls(agui.run[], bigint) is
    'The events of tool calls of runs, and their ends, up to a seq (null: all of them). Reads the batches of the runs '
    'that may have some.';

revoke execute on function agui_internal.events_of_calls(agui.run[], bigint) from public;
