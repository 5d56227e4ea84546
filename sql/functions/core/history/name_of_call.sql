create or replace function agui_internal.name_of_call(run agui.run, call_id text)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return (
        select agui_internal.json_string_text(member."toolCallName"::text)
        from agui.batch as batch
        cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
        cross join lateral json_to_record(agui_internal.json_guarded(element.value)) as member (type text, "toolCallId" json, "toolCallName" json)
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and coalesce(run.last_seq, 9223372036854775807)
            and agui_internal.mentions_type(batch.events::text, 'TOOL_CALL_')
            and agui_internal.mentions_type(element.value::text, 'TOOL_CALL_')
            and member.type = any (agui_internal.event_types('start tool', 'chunk tool'))
            and agui_internal.json_string_text(member."toolCallId"::text) = name_of_call.call_id
            and json_typeof(member."toolCallName") = 'string'
        order by batch.first_seq, element.position
        limit 1
    );
end
$$;

comment on function agui_internal.name_of_call(agui.run, text) is
    'The name of the function of a tool call that a run began; null: it began no such call. Reads '
    'those batches of the run that may name one.';

revoke execute on function agui_internal.name_of_call(agui.run, text) from public;
