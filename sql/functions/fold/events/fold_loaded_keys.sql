create or replace function agui_internal.fold_loaded_keys(message_ids text[], bodies text[])
returns jsonb
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return (
        -- Of several messages with one id the last in this order is kept: the first in the
        -- conversation.
        select coalesce(jsonb_object_agg(message.key, message.position order by message.position desc), '{}')
        from unnest(agui_internal.fold_keys(message_ids, bodies)) with ordinality as message (key, position)
        where message.key is not null
    );
end
$function$;

comment on function agui_internal.fold_loaded_keys(text[], text[]) is
    'The keys of the messages of an agui_internal.fold with the place of the first message that '
    'has each, for agui_internal.fold_find.';

revoke execute on function agui_internal.fold_loaded_keys(text[], text[]) from public;
