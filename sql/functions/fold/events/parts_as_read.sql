-- Protocol 0.x has parts of type "binary". The client makes an image, audio, video or document of
-- each, or drops it if the list has that one, too. One that has neither data nor a URL stays: to
-- drop it would lose it.
create or replace function agui_internal.parts_as_read(parts json)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    read       text[] := '{}';
    is_changed boolean := false;
    part       json;
    kind       text;
    mime_type  text;
    source     text;
    value      text;
    filename   text;
begin
    for part in select each.value from json_array_elements(parts) with ordinality as each (value, position) order by each.position loop
        kind := case when json_typeof(part) = 'object' then agui_internal.json_string_token((part -> 'type')::text) end;
        mime_type := part -> 'mimeType';
        if kind = '"binary"' and mime_type ^@ '"' then
            filename := part -> 'filename';
            if filename not like '"_%"' then
                filename := null;
            end if;
            foreach source in array '{data,url}'::text[] loop
                value := part -> source;
                exit when value like '"_%"';
                value := null;
            end loop;
            if value is not null then
                is_changed := true;
                kind := case split_part(agui_internal.json_string_token(mime_type), '/', 1)
                    when '"image' then 'image'
                    when '"audio' then 'audio'
                    when '"video' then 'video'
                    else 'document'
                end;
                continue when exists (
                    select
                    from json_array_elements(parts) as other (part)
                    where json_typeof(other.part) = 'object'
                        and agui_internal.json_string_token((other.part -> 'type')::text) = '"' || kind || '"'
                        and agui_internal.json_string_token((other.part -> 'source' -> 'type')::text) = '"' || source || '"'
                        and agui_internal.json_string_token((other.part -> 'source' -> 'value')::text) = agui_internal.json_string_token(value)
                        and agui_internal.json_string_token((other.part -> 'source' -> 'mimeType')::text) = agui_internal.json_string_token(mime_type)
                        and (
                            filename is null
                            or agui_internal.json_string_token((other.part -> 'metadata' -> 'filename')::text) = agui_internal.json_string_token(filename)
                        )
                );
                part := concat(
                    '{"type":"', kind, '","source":{"type":"', source, '","value":', value, ',"mimeType":', mime_type, '}',
                    case when filename is not null then ',"metadata":{"filename":' || filename || '}' end, '}'
                );
            end if;
        elsif kind in ('"image"', '"audio"', '"video"', '"document"') and (part -> 'metadata')::text = 'null' then
            is_changed := true;
            part := agui_internal.json_member_set(part::text, 'metadata', null);
        end if;
        read := array_append(read, part::text);
    end loop;
    return case when is_changed then '[' || array_to_string(read, ',') || ']' end;
end
$function$;

comment on function agui_internal.parts_as_read(json) is
    'The parts of a content (guarded JSON) as the client reads them; null: as they are. Parts of '
    'protocol 0.x become those of 1.0. Metadata of media that is null is left out.';

revoke execute on function agui_internal.parts_as_read(json) from public;
