create or replace function agui_internal.thoughts(
    in  thread_key uuid,
    in  run_no int,
    in  until bigint,
    out seq  bigint,
    out type text,
    out id   text
)
returns setof record
language plpgsql
stable
parallel safe
rows 100
set search_path = pg_catalog, pg_temp
as $function$
declare
    run_id constant text := agui_internal.run_of_events(thread_key, run_no, null, null);
    event  record;
    meant  record;
    opened text[];
begin
    for event in
        select batch.first_seq + element.position - 1 as seq, element.type, agui_internal.json_string_token(element.message_id::text) as id
        from (
            select stored.first_seq, agui_internal.json_guarded(stored.events) as events
            from agui.batch as stored
            where stored.thread_key = thoughts.thread_key
            and stored.run_no = thoughts.run_no
            and stored.first_seq <= coalesce(until, 9223372036854775807)
            and (stored.events::text ~ 'THINKING|-thinking-|"RUN_' or strpos(stored.events::text, '\u00') > 0)
            offset 0
        ) as batch
        cross join lateral rows from (
            json_to_recordset(batch.events) as (type text, "messageId" json)
        ) with ordinality as element (type, message_id, position)
        order by 1
    loop
        meant := agui_internal.thinking_as_reasoning(event.type, opened, event.id, run_id, event.seq);
        opened := meant.opened;
        if meant.type <> event.type then
            seq := event.seq;
            type := meant.type;
            id := meant.id;
            return next;
        end if;
    end loop;
end
$function$;

comment on function agui_internal.thoughts(uuid, int, bigint) is
    'The events of thinking of a run, up to a seq (null: all), as the events of reasoning that they '
    'mean: the type, and the id as a JSON string of guarded text.';

revoke execute on function agui_internal.thoughts(uuid, int, bigint) from public;
