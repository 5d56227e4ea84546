create or replace function agui_internal.run_of_events(thread_key uuid, run_no int, given json, until bigint)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    if given is null then
        return (
            select agui_internal.json_string_token(agui_internal.json_guard(to_json(run.run_id)::text))
            from agui.run as run
            where run.thread_key = run_of_events.thread_key and run.run_no = run_of_events.run_no
        );
    end if;
    return (
        select case when started.id ^@ '"' then agui_internal.json_string_token(started.id) end
        from json_array_elements(agui_internal.json_guarded(given)) with ordinality as event (value, position)
        cross join lateral (select (event.value -> 'runId')::text as id) as started
        where event.position <= until
        and agui_internal.event_type(event.value) = any (agui_internal.event_types('start run'))
        order by event.position desc
        limit 1
    );
end
$function$;

comment on function agui_internal.run_of_events(uuid, int, json, bigint) is
    'The id of a run of the log; of events that are given instead, the one that the last RUN_STARTED '
    'before a position names (null: none). A JSON string of guarded text.';

revoke execute on function agui_internal.run_of_events(uuid, int, json, bigint) from public;
