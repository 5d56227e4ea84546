create or replace function agui_internal.too_large_failure(fold agui_internal.fold, sent_as_list int, state_path text)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    message record;
begin
    select place.id, octet_length(place.body) as bytes, count(*) over () as number,
        not agui_internal.fits_message(place.body) as is_large
    into message
    from unnest(fold.message_ids, fold.bodies) with ordinality as place (id, body, position)
    left join agui_internal.repeated_messages(fold.message_ids) as repeated on repeated.position = place.position
    where not agui_internal.fits_message(place.body)
        or repeated.position > sent_as_list and agui_internal.result_event(place.body) is null
    order by place.position
    limit 1;
    if found and message.is_large then
        return '{"type":"RUN_ERROR","code":"MESSAGE_TOO_LARGE","message":' || to_json(format(
            'the message "%s" has %s bytes, more than a client takes in one event (10 MiB)%s: all others were sent; '
            'read it with agui.messages or GET /threads/{thread}/messages',
            message.id, message.bytes, case when message.number > 1 then format(', as have %s others', message.number - 1) else '' end
        )) || '}';
    elsif found then
        return '{"type":"RUN_ERROR","code":"MESSAGE_NOT_SENT","message":' || to_json(format(
            'the message "%s" has the id of an earlier one, so it cannot be sent in a part of this history: '
            'read it with agui.messages or GET /threads/{thread}/messages',
            message.id
        )) || '}';
    elsif state_path is not null then
        return '{"type":"RUN_ERROR","code":"STATE_TOO_LARGE","message":' || to_json(format(
            'the value at "%s" of the state is larger than a client takes in one event (10 MiB): the rest was sent; '
            'read it with agui.state or GET /threads/{thread}/state',
            state_path
        )) || '}';
    end if;
    return null;
end
$$;

comment on function agui_internal.too_large_failure(agui_internal.fold, int, text) is
    'The RUN_ERROR that names what of a fold cannot be sent to a client in parts: the first message, or '
    'the value of the state at a path; null: all can. The first sent_as_list messages come as a list, which '
    'may repeat ids.';

revoke execute on function agui_internal.too_large_failure(agui_internal.fold, int, text) from public;
