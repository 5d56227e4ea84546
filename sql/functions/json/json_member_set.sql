create or replace function agui.json_member_set(document text, name text, value text)
returns text
language sql
immutable
parallel safe
begin atomic
    select '{' || coalesce(string_agg(to_json(member.key)::text || ':' || member.value, ',' order by member.position), '') || '}'
    from (
        select each.key, each.value::text, each.position
        from json_each(document::json) with ordinality as each (key, value, position)
        where each.key <> name
        union all
        select name, value, null
        where value is not null
    ) as member (key, value, position);
end;

comment on function agui.json_member_set(text, text, text) is
    'A JSON object (as guarded text) with a member set to a value, at its end; without the member when the value is null.';

revoke execute on function agui.json_member_set(text, text, text) from public;
