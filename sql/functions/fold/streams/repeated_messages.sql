create or replace function agui_internal.repeated_messages(message_ids text[])
returns table ("position" bigint)
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
    select place.position
    from (
        select message.id, message.position, row_number() over (partition by message.id order by message.position) as nth
        from unnest(message_ids) with ordinality as message (id, position)
    ) as place
    where place.id is not null and place.nth > 1;
end;

comment on function agui_internal.repeated_messages(text[]) is
    'The positions of the messages whose id an earlier one has.';

revoke execute on function agui_internal.repeated_messages(text[]) from public;
