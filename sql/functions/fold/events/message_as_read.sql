create or replace function agui_internal.message_as_read(message json)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    read    text := message::text;
    content text;
    name    text;
begin
    -- Most messages have none of these, so they need not be parsed. (The escapes are of letters.)
    if strpos(read, 'null') = 0
        and strpos(read, 'binary') = 0
        and strpos(read, '\u006') = 0
        and strpos(read, '\u007') = 0
    then
        return read;
    end if;
    if json_typeof(message -> 'content') = 'array' then
        content := agui_internal.parts_as_read(message -> 'content');
        if content is not null then
            read := agui_internal.json_member_set(read, 'content', content);
        end if;
    end if;
    foreach name in array '{subagentRunId,content,toolCalls,name,encryptedValue,metadata}'::text[] loop
        if (message -> name)::text = 'null'
            and (name <> 'content' or agui_internal.json_string_token((message -> 'role')::text) = '"assistant"')
        then
            read := agui_internal.json_member_set(read, name, null);
        end if;
    end loop;
    return read;
end
$function$;

comment on function agui_internal.message_as_read(json) is
    'A message of a list (guarded JSON) as the client reads it: its parts, and without members that '
    'are null and may be absent.';

revoke execute on function agui_internal.message_as_read(json) from public;
