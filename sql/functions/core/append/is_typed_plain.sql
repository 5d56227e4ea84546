create or replace function agui_internal.is_typed_plain(events json)
returns boolean
language plpgsql
volatile
strict
set search_path = pg_catalog, pg_temp
as $$
declare
    type json;
begin
    -- Nothing of a large event is copied.
    type := events #> '{0,type}';
    return json_typeof(type) = 'string' and type #>> '{}' <> all (array['RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR'] || agui_internal.event_types('ask'));
exception
    -- A string with \u0000 or half a surrogate pair.
    when data_exception then
        return false;
end
$$;

comment on function agui_internal.is_typed_plain(json) is
    'Whether an array of one event has a type that does not belong to the life cycle of its run. '
    'Not true: agui_internal.inspect_events has to check.';

revoke execute on function agui_internal.is_typed_plain(json) from public;
