create or replace function agui_internal.compact_input(started json, messages text)
returns text
language sql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    select '{' || string_agg(
        to_json(field.key)::text || ':' || case
            when field.key <> 'input' then field.value::text
            else (
                select '{' || string_agg(
                    to_json(member.key)::text || ':' || case when member.key = 'messages' then messages else member.value::text end,
                    ','
                    order by member.position
                ) || '}'
                from json_each(started -> 'input') with ordinality as member (key, value, position)
            )
        end,
        ','
        order by field.position
    ) || '}'
    from json_each(started) with ordinality as field (key, value, position)
$function$;

comment on function agui_internal.compact_input(json, text) is
    'A RUN_STARTED event (guarded JSON) with another list of messages in its input.';

revoke execute on function agui_internal.compact_input(json, text) from public;
