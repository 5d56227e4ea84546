create or replace function agui_internal.lists_message(messages json, wanted text)
returns boolean
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select exists (
        select
        from json_array_elements(case when json_typeof(messages) = 'array' then messages end) as entry (message)
        where agui_internal.json_string_text(case when json_typeof(entry.message) = 'object' then (entry.message -> 'id')::text end) = wanted
    )
$$;

comment on function agui_internal.lists_message(json, text) is
    'Whether a list of messages in guarded JSON has one with an id, as the fold decodes it.';

revoke execute on function agui_internal.lists_message(json, text) from public;
