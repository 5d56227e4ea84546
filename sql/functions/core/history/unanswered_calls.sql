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
            select
                agui_internal.json_string_text(event."toolCallId"::text) as id,
                min(batch.first_seq + event.position) as seq,
                bool_or(event.type = any (agui_internal.event_types('add result'))) as has_result
            from (
                select stored.first_seq, agui_internal.json_guarded(stored.events) as events
                from agui.batch as stored
                where stored.thread_key = run.thread_key
                    and stored.run_no = run.run_no
                    and stored.first_seq between run.first_seq and run.last_seq
                    -- A type may be spelled with escapes.
                    and (strpos(stored.events::text, 'TOOL_CALL_') > 0 or strpos(stored.events::text, '\u00') > 0)
                offset 0
            ) as batch
            cross join lateral rows from (json_to_recordset(batch.events) as (type text, "toolCallId" json))
                with ordinality as event (type, "toolCallId", position)
            where event.type = any (agui_internal.event_types('start tool', 'chunk tool', 'add result')) and json_typeof(event."toolCallId") = 'string'
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
