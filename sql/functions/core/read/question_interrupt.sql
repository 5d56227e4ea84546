create or replace function agui_internal.question_interrupt(event json, run_id text, asked_before int)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return (
        select '{' || string_agg('"' || member.name || '":' || member.value, ',' order by member.place) || ',"source":' || event::text || '}'
        from (
            select
                listed.name,
                listed.place,
                coalesce(
                    (array_agg(found.value order by listed.choice) filter (where found.value ^@ '"' and found.value <> '""'))[1],
                    case listed.name
                        -- The place stays when the run is compacted.
                        when 'id' then left(coalesce(run_id, '""'), -1) || '-question-' || asked_before + 1 || '"'
                        when 'reason' then to_json(agui_internal.question_name())::text
                    end
                ) as value
            from agui_internal.question_members() as listed
            cross join lateral (select (event #> listed.path)::text as value) as found
            group by listed.name, listed.place
        ) as member
        where member.value is not null
    );
end
$function$;

comment on function agui_internal.question_interrupt(json, text, int) is
    'The interrupt that a question makes if its run comes to a RUN_FINISHED without an outcome. event is '
    'the whole event, which stays as its source; run_id a JSON string (null: unknown); both guarded. '
    'asked_before: how many questions of the run are before it. compaction.Fold does the same.';

revoke execute on function agui_internal.question_interrupt(json, text, int) from public;
