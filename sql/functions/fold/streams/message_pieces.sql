create or replace function agui_internal.message_pieces(bodies text[], max_bytes int)
returns int[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    message record;
    size    int := 0;
    pieces  int[] := '{}';
begin
    for message in
        select place.position::int as position, octet_length(place.body) as bytes
        from unnest(bodies) with ordinality as place (body, position)
    loop
        if size > 0 and size + message.bytes > max_bytes then
            pieces := pieces || (message.position - 1);
            size := 0;
        end if;
        size := size + message.bytes + 1;
    end loop;
    return pieces || coalesce(cardinality(bodies), 0);
end
$$;

comment on function agui_internal.message_pieces(text[], int) is
    'Cuts a list of messages into pieces of max_bytes at most, unless one message is larger: the '
    'position of the last message of each piece.';

revoke execute on function agui_internal.message_pieces(text[], int) from public;
