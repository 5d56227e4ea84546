create or replace function agui_internal.name_of_call(run agui.run, call_id text)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select event.name
        from agui_internal.events_of_calls(array[run]) as event
        where event.ending is null and not event.is_result and event.has_effect and event.call_id = name_of_call.call_id and event.name is not null
        -- A later start renames the call.
        order by event.seq desc
        limit 1
    );
end
$$;

comment on function agui_internal.name_of_call(agui.run, text) is
    'The name of the function of a tool call that a run began; null: it began no such call. Reads '
    'those batches of the run that may name one.';

revoke execute on function agui_internal.name_of_call(agui.run, text) from public;
