create or replace function agui_internal.question_events(interrupts text)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    if strpos(interrupts, '"source"') = 0 then
        return null;
    end if;
    return (
        select agui_internal.json_unguard(string_agg((interrupt.value -> 'source')::text, ',' order by interrupt.position))
        from json_array_elements(agui_internal.json_guard(interrupts)::json) with ordinality as interrupt (value, position)
        where json_typeof(interrupt.value) = 'object' and agui_internal.is_question(interrupt.value -> 'source')
    );
end
$function$;

comment on function agui_internal.question_events(text) is
    'The questions (JSON texts, joined by commas) of which interrupts were made, as they came; null: the '
    'interrupts are those of an outcome.';

revoke execute on function agui_internal.question_events(text) from public;
