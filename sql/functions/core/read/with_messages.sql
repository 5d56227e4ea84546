create or replace function agui_internal.with_messages(sections jsonb, part_nos int4range[])
returns jsonb
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select jsonb_agg(
            case section.value ->> 'kind'
                when 'message' then section.value || jsonb_build_object('part_nos', coalesce(to_jsonb(part_nos), '[]'))
                else section.value
            end
            order by section.place
        )
        from jsonb_array_elements(sections) with ordinality as section (value, place)
    );
end
$$;

comment on function agui_internal.with_messages(jsonb, int4range[]) is
    'Sections of an input in parts, with other messages (null: none).';

revoke execute on function agui_internal.with_messages(jsonb, int4range[]) from public;
