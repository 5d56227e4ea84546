-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
create or replace function agui_internal.json_member_set(document text, name text, value text)
returns text
language plpgsql
immutable
parallel safe
as $function$
begin
    return (
        select '{' || coalesce(string_agg(to_json(member.key)::text || ':' || member.value, ',' order by member.position), '') || '}'
        from (
            -- The last value of a key counts, at the place of its first one.
            select each.key, (array_agg(each.value order by each.position desc))[1] as value, min(each.position) as position
            from (
                select each.key, each.value::text, each.position
                from json_each(document::json) with ordinality as each (key, value, position)
                union all
                select json_member_set.name, json_member_set.value, 9223372036854775807
            ) as each (key, value, position)
            group by each.key
        ) as member
        where member.value is not null
    );
end
$function$;

comment on function agui_internal.json_member_set(text, text, text) is
    'A JSON object (as guarded text) with a member set to a value, in its place or else at the end; without the member when the value is null.';

revoke execute on function agui_internal.json_member_set(text, text, text) from public;
