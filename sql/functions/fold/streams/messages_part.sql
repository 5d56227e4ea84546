create or replace function agui_internal.messages_part(fold agui_internal.fold, first int, last int, run_ids text)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    begins   constant text := '{"type":"RUN_STARTED",' || run_ids;
    finished constant text := '{"type":"RUN_FINISHED",' || run_ids || '}';
begin
    if first = 1 then
        return concat_ws(
            ',',
            begins || '}',
            agui_internal.clearing_event(fold.message_ids[1:last], fold.roles[1:last]),
            '{"type":"MESSAGES_SNAPSHOT","messages":[' || (
                select coalesce(string_agg(message.body, ',' order by message.position), '')
                from unnest(fold.bodies[1:last]) with ordinality as message (body, position)
                where agui_internal.fits_message(message.body)
            ) || ']}',
            finished
        );
    end if;
    return (
        with message as materialized (
            select
                place.body,
                first + place.nth - 1 as position,
                repeated.position is not null as is_repeated
            from unnest(fold.bodies[first:last]) with ordinality as place (body, nth)
            left join agui_internal.repeated_messages(fold.message_ids[1:last]) as repeated on repeated.position = first + place.nth - 1
            where agui_internal.fits_message(place.body)
        ),
        -- A run for each stretch of messages without a repeated id, and the results behind it.
        stretch as (
            select
                message.*,
                count(*) filter (where not message.is_repeated and message.is_first) over (order by message.position) as no
            from (
                select message.*, lag(message.is_repeated, 1, true) over (order by message.position) as is_first
                from message
            ) as message
        ),
        written as (
            select
                stretch.no,
                string_agg(stretch.body, ',' order by stretch.position) filter (where not stretch.is_repeated) as listed,
                string_agg(agui_internal.result_event(stretch.body), ',' order by stretch.position) filter (where stretch.is_repeated) as results
            from stretch
            group by stretch.no
        )
        select string_agg(concat_ws(
            ',',
            begins || coalesce(',"input":{' || run_ids || ',"messages":[' || written.listed || '],"tools":[],"context":[]}', '') || '}',
            written.results,
            finished
        ), ',' order by written.no)
        from written
    );
end
$$;

comment on function agui_internal.messages_part(agui_internal.fold, int, int, text) is
    'The events that give a client the messages of a fold from one position to another, behind those '
    'before them: a run or several (JSON texts, joined by commas; null: no client takes any of them). '
    'run_ids: the members threadId and runId.';

revoke execute on function agui_internal.messages_part(agui_internal.fold, int, int, text) from public;
