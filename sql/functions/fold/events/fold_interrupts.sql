create or replace function agui_internal.fold_interrupts(interrupts json)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    interrupt json;
    read      text;
    name      text;
    list      text := '';
begin
    for interrupt in select element.value from json_array_elements(interrupts) with ordinality as element (value, position) order by element.position loop
        read := interrupt::text;
        if json_typeof(interrupt) = 'object' then
            foreach name in array '{subagentRunId,message,toolCallId,responseSchema,expiresAt,metadata}'::text[] loop
                if (interrupt -> name)::text = 'null' then
                    read := agui_internal.json_member_set(read, name, null);
                end if;
            end loop;
        end if;
        list := list || ',' || read;
    end loop;
    return agui_internal.json_unguard('[' || substr(list, 2) || ']');
end
$function$;

comment on function agui_internal.fold_interrupts(json) is
    'The interrupts of a RUN_FINISHED event (guarded JSON) as JSON text, without members that are null '
    'and may be absent.';

revoke execute on function agui_internal.fold_interrupts(json) from public;
