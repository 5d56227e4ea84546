create or replace function agui_internal.fold_attachments(fold agui_internal.fold)
returns setof agui_internal.fold_attachment
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        (row_number() over (order by message.position, part.position))::int,
        message.message_id,
        agui_internal.json_string_text((part.value -> 'type')::text),
        agui_internal.json_string_text(coalesce(source.value -> 'mimeType', part.value -> 'mimeType')::text),
        agui_internal.json_string_text(coalesce(
            part.value -> 'filename',
            case when json_typeof(part.value -> 'metadata') = 'object' then part.value -> 'metadata' -> 'filename' end
        )::text),
        agui_internal.json_string_text(data.value::text)
    from agui_internal.fold_messages(fold, array['user', 'tool']) as message
    cross join lateral json_array_elements(
        case when json_typeof(message.body -> 'content') = 'array' then message.body -> 'content' end
    ) with ordinality as part (value, position)
    cross join lateral (
        select case when json_typeof(part.value) = 'object' and json_typeof(part.value -> 'source') = 'object' then part.value -> 'source' end
    ) as source (value)
    cross join lateral (
        select case
            when source.value ->> 'type' = 'data' then source.value -> 'value'
            when json_typeof(part.value) = 'object' and part.value ->> 'type' = 'binary' then part.value -> 'data'
        end
    ) as data (value)
    where json_typeof(data.value) = 'string';
end
$$;

comment on function agui_internal.fold_attachments(agui_internal.fold) is
    'The parts of messages of a fold that hold data, in order: those with a source of the type data, '
    'and those of the older type binary.';

revoke execute on function agui_internal.fold_attachments(agui_internal.fold) from public;
