create or replace function agui_internal.fold_keys(message_ids text[], bodies text[])
returns text[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return array(
        select
            case
                when strpos(message.id, '\') = 0 then to_json(message.id)::text
                -- Such an id may still be guarded, so it is ambiguous.
                when message.id is not null then agui_internal.json_string_token((agui_internal.json_guard(message.body)::json -> 'id')::text)
            end
        from unnest(message_ids, bodies) with ordinality as message (id, body, position)
        order by message.position
    );
end
$function$;

comment on function agui_internal.fold_keys(text[], text[]) is
    'The ids of the messages of an agui_internal.fold as JSON strings of guarded text, in which '
    'different ids are always different; null for a message without an id.';

revoke execute on function agui_internal.fold_keys(text[], text[]) from public;
