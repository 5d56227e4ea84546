create or replace function agui.replay(
    thread_id text,
    run_id    text default null,
    shape     text default 'snapshot',
    scope     text default ''
)
returns setof json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    run         agui.run := agui_internal.find_run(thread_id, run_id, scope);
    fold        agui_internal.fold;
    parent      text;  -- the id of the parent run
    ending      json;  -- the event that ended the run
    thread      constant text := '"threadId":' || to_json(thread_id);
    interrupted text;
begin
    if shape is distinct from 'snapshot' then
        return query
        select event.payload
        from json_array_elements(
            agui.compact_events(
                (
                    select ('[' || string_agg(element.payload::text, ',' order by batch.first_seq, element.position) || ']')::json
                    from agui.lineage(thread_id, run.run_id, scope) as ancestor
                    join agui.batch as batch
                        on batch.thread_key = run.thread_key and batch.run_no = ancestor.run_no
                    cross join lateral json_array_elements(batch.events) with ordinality as element (payload, position)
                ),
                shape
            )
        ) with ordinality as event (payload, position)
        order by event.position;
        return;
    end if;

    fold := agui_internal.fold_at(run, null);
    select ancestor.run_id into parent
    from agui.run as ancestor
    where ancestor.thread_key = run.thread_key and ancestor.run_no = run.parent_no;

    select element.payload into ending
    from agui.batch as batch
    cross join lateral json_array_elements(batch.events) with ordinality as element (payload, position)
    where batch.thread_key = run.thread_key
        and batch.run_no = run.run_no
        and batch.first_seq <= run.last_seq
        and batch.first_seq + batch.n > run.last_seq
        and batch.first_seq + element.position - 1 = run.last_seq;

    -- Interrupts that the end of the run does not say, because it failed or is still to come: an earlier run ended with them.
    if not agui_internal.json_equal(fold.interrupts, (agui_internal.fold_given(null, coalesce(ending::text, ''))).interrupts) then
        interrupted := thread || ',"runId":' || to_json(coalesce(parent, run.run_id));
        return next '{"type":"RUN_STARTED",' || interrupted || '}';
        return next '{"type":"RUN_FINISHED",' || interrupted || ',"outcome":{"type":"interrupt","interrupts":' || fold.interrupts || '}}';
    end if;

    return next '{' || concat_ws(
        ',',
        '"type":"RUN_STARTED"',
        thread,
        '"runId":' || to_json(run.run_id),
        '"parentRunId":' || to_json(parent)
    ) || '}';
    return next '{"type":"MESSAGES_SNAPSHOT","messages":[' || array_to_string(fold.bodies, ',') || ']}';
    return next '{"type":"STATE_SNAPSHOT","snapshot":' || fold.state || '}';
    return query
    select opening.event
    from json_array_elements(('[' || agui_internal.compact_lanes(fold) || ']')::json) with ordinality as opening (event, position)
    order by opening.position;
    if ending is not null then
        return next ending;
    end if;
end
$function$;

comment on function agui.replay(text, text, text, text) is
    'A short stream of events, one a row, that gives any AG-UI client what the lineage of a run (null: the head) means. Shape snapshot: '
    'RUN_STARTED, MESSAGES_SNAPSHOT, STATE_SNAPSHOT and the event that ended the run, none for one in progress; behind a run that ended with '
    'interrupts, where they still wait and this run does not end with them itself. Shape stream: the lineage''s events, as '
    'agui.compact_events has them. UI001: unknown thread, UI002: unknown run, UI013: there is no such shape.';

revoke execute on function agui.replay(text, text, text, text) from public;
