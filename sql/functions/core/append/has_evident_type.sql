create or replace function agui_internal.has_evident_type(event bytea)
returns boolean
language sql
immutable
parallel safe
-- Inlined. If an event, or an array of one, begins with its type, and "type" occurs nowhere else,
-- then that is the type. A type in other letters would have their escapes: \u004 to \u007 begin
-- those of ASCII letters.
return event like any (array['{"type":"%'::bytea, '{"type": "%'::bytea, '[{"type":"%'::bytea, '[{"type": "%'::bytea])
    and event not like '%"type"%"type"%'::bytea
    and (
        event not like '%\\\\u00%'::bytea
        or event not like all (array['%\\\\u004%'::bytea, '%\\\\u005%'::bytea, '%\\\\u006%'::bytea, '%\\\\u007%'::bytea])
    );

comment on function agui_internal.has_evident_type(bytea) is
    'Whether an event (agui_internal.json_bytes), or an array of one event, shows its type without being parsed.';

revoke execute on function agui_internal.has_evident_type(bytea) from public;
