create or replace function agui_internal.fold_interrupts(interrupts json)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return agui_internal.json_unguard((
        select '[' || coalesce(
            string_agg(
                case
                    when json_typeof(interrupt.value) <> 'object' then interrupt.value::text
                    when (interrupt.value -> 'subagentRunId')::text = 'null'
                        then agui_internal.json_member_set(interrupt.value::text, 'subagentRunId', null)
                    else interrupt.value::text
                end,
                ','
                order by interrupt.position
            ),
            ''
        ) || ']'
        from json_array_elements(interrupts) with ordinality as interrupt (value, position)
    ));
end
$function$;

comment on function agui_internal.fold_interrupts(json) is
    'The interrupts of a RUN_FINISHED event (guarded JSON) as JSON text, without each '
    'subagentRunId that is null.';

revoke execute on function agui_internal.fold_interrupts(json) from public;
