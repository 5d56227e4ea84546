create or replace function agui_internal.input_parts_of(
    kind  text,
    value json,
    out bodies    text[],
    out separator text
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if kind in ('tools', 'context') then
        bodies := array[value::text];
        separator := '';
        return;
    end if;
    -- JSON.stringify writes no white space, Python's json.dumps a space behind commas and colons.
    foreach separator in array array[',', ', '] loop
        if kind = 'message' and json_typeof(value) = 'array' then
            bodies := array(
                select element.body::text
                from json_array_elements(value) with ordinality as element (body, place)
                order by element.place
            );
            if '[' || array_to_string(bodies, separator) || ']' = value::text then
                return;
            end if;
        elsif kind = 'state' and json_typeof(value) = 'object' then
            bodies := array(
                select to_json(member.key) || case separator when ',' then ':' else ': ' end || member.body
                from json_each(value) with ordinality as member (key, body, place)
                order by member.place
            );
            if '{' || array_to_string(bodies, separator) || '}' = value::text then
                bodies := array(
                    select '{' || member.body || '}'
                    from unnest(bodies) with ordinality as member (body, place)
                    order by member.place
                );
                return;
            end if;
        end if;
    end loop;
    bodies := null;
end
$$;

comment on function agui_internal.input_parts_of(text, json) is
    'The bodies of the parts (agui.input_part) of a member of an input in guarded JSON, and what stands '
    'between them. Null: it stays in the skeleton, because the parts would not give the same text.';

revoke execute on function agui_internal.input_parts_of(text, json) from public;
