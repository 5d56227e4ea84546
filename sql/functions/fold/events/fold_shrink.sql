-- A head is copied whenever a step reads it. So its long parts are moved elsewhere: each long value
-- separately and, if there are many members, all that no step changes, adjacent ones together.
create or replace function agui_internal.fold_shrink(inout head text, in large_count int, out parts text[])
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    member  record;
    members text[] := '{}';
    run     text;
    nested  record;
    is_long constant boolean := (select count(*) > 100 from json_each(head::json));
begin
    parts := '{}';
    for member in
        select to_json(each.key)::text as key, each.value::text as value, each.key as name
        from json_each(head::json) with ordinality as each (key, value, position)
        order by each.position
    loop
        if is_long
            and member.name not in ('content', 'metadata', 'toolCalls', 'encryptedValue', 'activityType', 'subagentRunId', 'function')
        then
            run := concat_ws(',', run, member.key || ':' || member.value);
            continue;
        end if;
        if run is not null then
            parts := array_append(parts, run);
            members := array_append(members, '"\\' || large_count + cardinality(parts) || '":0');
            run := null;
        end if;
        if member.name = 'function' and member.value ^@ '{' then
            nested := agui_internal.fold_shrink(member.value, large_count + cardinality(parts));
            parts := parts || nested.parts;
            member.value := nested.head;
        elsif octet_length(member.value) > 200 then
            parts := array_append(parts, member.value);
            member.value := '"\\' || large_count + cardinality(parts) || '"';
        end if;
        members := array_append(members, member.key || ':' || member.value);
    end loop;
    if run is not null then
        parts := array_append(parts, run);
        members := array_append(members, '"\\' || large_count + cardinality(parts) || '":0');
    end if;
    head := '{' || array_to_string(members, ',') || '}';
end
$function$;

comment on function agui_internal.fold_shrink(text, int) is
    'The head of a message or tool call (agui_internal.fold_open) with marks in place of its long '
    'parts, and these parts. "\\\\7" is the seventh, counted from large_count. '
    'agui_internal.fold_fill puts them back.';

revoke execute on function agui_internal.fold_shrink(text, int) from public;
