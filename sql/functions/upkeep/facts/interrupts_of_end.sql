create or replace function agui_internal.interrupts_of_end(run agui.run, interrupts json, at timestamptz)
returns setof agui.projected_interrupt
language plpgsql
stable
parallel safe
rows 1
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        run.thread_key,
        run.run_no,
        listed.position::int,
        agui_internal.json_string_text((listed.value -> 'id')::text),
        agui_internal.json_string_text((listed.value -> 'reason')::text),
        left(agui_internal.json_string_text((listed.value -> 'message')::text), 1000),
        agui_internal.json_string_text((listed.value -> 'toolCallId')::text),
        at,
        agui_internal.json_timestamp(listed.value -> 'expiresAt'),
        null::boolean,
        null::boolean,
        null::text
    from json_array_elements(interrupts) with ordinality as listed (value, position)
    where json_typeof(listed.value) = 'object';
end
$$;

comment on function agui_internal.interrupts_of_end(agui.run, json, timestamptz) is
    'What agui.projected_interrupt is to say of a run, given the interrupts of its last RUN_FINISHED and when that was '
    'recorded (agui_internal.last_finish). Not whether it waits.';

revoke execute on function agui_internal.interrupts_of_end(agui.run, json, timestamptz) from public;
