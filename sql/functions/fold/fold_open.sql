create or replace function agui.fold_open(
    in body text,
    in is_call boolean,
    in is_activity boolean,
    out head text,
    out content text,
    out inside text,
    out metadata text
)
language sql
immutable
parallel safe
begin atomic
    with member as (
        select each.key, each.value::text as value, each.position
        from json_each(body::json) with ordinality as each (key, value, position)
    ),
    part as (
        select
            '{' || coalesce(
                string_agg(to_json(member.key)::text || ':' || member.value, ',' order by member.position) filter (
                    where member.key <> 'metadata'
                    and member.key <> case when is_call then 'function' else 'content' end
                    and member.key <> case when is_call then 'function' when is_activity then 'activityType' else 'toolCalls' end
                ),
                ''
            ) || '}' as head,
            body::json -> 'content' as content,
            body::json -> case when is_call then 'function' when is_activity then 'activityType' else 'toolCalls' end as inside,
            body::json -> 'metadata' as metadata
        from member
    )
    select
        part.head,
        case
            when not is_call then part.content
            when json_typeof(part.inside) = 'object' then part.inside -> 'arguments'
        end::text,
        case
            when not is_call then part.inside::text
            when json_typeof(part.inside) = 'object' then agui.json_member_set(part.inside::text, 'arguments', null)
            else '{}'
        end,
        part.metadata::text
    from part;
end;

comment on function agui.fold_open(text, boolean, boolean) is
    'A message or tool call (guarded JSON text) taken apart: what grows (content, or the arguments of a call), what is inside '
    '(the tool calls of a message, the type of an activity, the function of a call without its arguments), metadata, and the rest.';

revoke execute on function agui.fold_open(text, boolean, boolean) from public;
