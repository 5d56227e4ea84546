create or replace function agui_internal.fold_message_list(messages json)
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    select array(
        select case
            when json_typeof(message.value) = 'string' then '{"role":"user","content":' || message.value || '}'
            else agui_internal.message_as_read(message.value)
        end
        from json_array_elements(messages) with ordinality as message (value, position)
        where json_typeof(message.value) in ('object', 'string')
        order by message.position
    )
$function$;

comment on function agui_internal.fold_message_list(json) is
    'The messages of a list in an event (guarded JSON). A plain string is a user message without '
    'an id. A value that is not a message is left out, and the others are as the client reads them.';

revoke execute on function agui_internal.fold_message_list(json) from public;
