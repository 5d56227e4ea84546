create or replace function agui_internal.fold_raw_events(thread_key uuid, first_seq bigint, given json)
returns json[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return array(
        select json_array_elements(agui_internal.json_guarded(batch.events))
        from (
            select given
            where given is not null
            union all
            select stored.events
            from agui.batch as stored
            where stored.thread_key = fold_raw_events.thread_key and stored.first_seq = fold_raw_events.first_seq
        ) as batch (events)
    );
end
$function$;

comment on function agui_internal.fold_raw_events(uuid, bigint, json) is
    'The events of a batch, or the given events, one by one and unchanged (guarded JSON). '
    'agui_internal.event_fields cannot distinguish a null member from a missing one, and lacks '
    'members without a meaning.';

revoke execute on function agui_internal.fold_raw_events(uuid, bigint, json) from public;
