create or replace function agui_internal.fold_attachments(fold agui_internal.fold)
returns setof agui_internal.fold_attachment
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Each function reads its JSON once, for all members: an operator for each of them would hold one more copy
    -- of a large message until the row is done.
    return query
    select
        (row_number() over (order by message.position, part.position))::int,
        message.message_id,
        agui_internal.json_string_text(member.type::text),
        agui_internal.json_string_text(coalesce(source."mimeType", member."mimeType")::text),
        agui_internal.json_string_text(coalesce(
            member.filename,
            case when json_typeof(member.metadata) = 'object' then member.metadata -> 'filename' end
        )::text),
        agui_internal.json_string_text(data.value::text)
    from agui_internal.fold_messages(fold, array['user', 'tool']) as message
    cross join lateral json_to_record(message.body) as body (content json)
    cross join lateral json_array_elements(case when json_typeof(body.content) = 'array' then body.content end)
        with ordinality as part (value, position)
    cross join lateral json_to_record(case when json_typeof(part.value) = 'object' then part.value else '{}' end)
        as member (type json, source json, "mimeType" json, filename json, metadata json, data json)
    cross join lateral json_to_record(case when json_typeof(member.source) = 'object' then member.source else '{}' end)
        as source (type json, "mimeType" json, value json)
    cross join lateral (
        select case
            when source.type::text = '"data"' then source.value
            when member.type::text = '"binary"' then member.data
        end
    ) as data (value)
    where json_typeof(data.value) = 'string';
end
$$;

comment on function agui_internal.fold_attachments(agui_internal.fold) is
    'The parts of messages of a fold that hold data, in order: those with a source of the type data, '
    'and those of the older type binary.';

revoke execute on function agui_internal.fold_attachments(agui_internal.fold) from public;
