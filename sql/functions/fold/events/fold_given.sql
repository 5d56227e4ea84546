create or replace function agui_internal.fold_given(start agui_internal.fold, events text)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    given constant json := '[' || events || ']';
begin
    start := coalesce(start, agui_internal.fold_empty());
    start.spent := 0;
    return agui_internal.fold_patched(
        agui_internal.fold_events(
            start,
            null,
            '{null}',
            '{0}',
            array[json_array_length(given)],
            given
        )
    );
end
$function$;

comment on function agui_internal.fold_given(agui_internal.fold, text) is
    'Applies events (JSON texts, joined by commas), which need not be in the log, to the result of '
    'a lineage (null: the empty fold). For the fuel limit, a RUN_STARTED among them begins a run.';

revoke execute on function agui_internal.fold_given(agui_internal.fold, text) from public;
