create or replace function agui.fold_given(start agui.fold, events text)
returns agui.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    given constant json := '[' || events || ']';
begin
    return agui.fold_events(
        coalesce(start, row(0, '{}', '{}', '{}', '{}', '{}', '[]', null)::agui.fold),
        null,
        '{null}',
        '{0}',
        array[json_array_length(given)],
        given
    );
end
$function$;

comment on function agui.fold_given(agui.fold, text) is
    'What a lineage means (null: nothing so far) with further events (JSON texts, joined by commas), which need not be in the log.';

revoke execute on function agui.fold_given(agui.fold, text) from public;
