-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
create or replace function agui_internal.fold_open(
    in body text,
    in is_call boolean,
    out head text,
    out content text,
    out inside text,
    out metadata text
)
language plpgsql
immutable
parallel safe
as $function$
declare
    whole constant json := body::json;
    apart text[] := '{content, toolCalls, metadata}';
begin
    if not is_call then
        content := whole -> 'content';
        inside := whole -> 'toolCalls';
    elsif json_typeof(whole -> 'function') = 'object' then
        apart := '{function, metadata}';
        content := whole -> 'function' -> 'arguments';
        inside := agui_internal.json_member_set((whole -> 'function')::text, 'arguments', null);
    else
        apart := '{metadata}';
    end if;
    metadata := whole -> 'metadata';

    select '{' || coalesce(string_agg(to_json(member.key)::text || ':' || member.value, ',' order by member.position), '') || '}'
    into head
    from json_each(whole) with ordinality as member (key, value, position)
    where member.key <> all (apart);
end
$function$;

comment on function agui_internal.fold_open(text, boolean) is
    'A message or a tool call (guarded JSON text) taken apart: what grows (content, or the arguments of a call), what is inside '
    '(toolCalls, or the function of a call without its arguments), metadata, and an object of the rest.';

revoke execute on function agui_internal.fold_open(text, boolean) from public;
