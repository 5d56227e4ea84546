create or replace function agui_internal.json_from_jsonb(document jsonb)
returns text
language sql
immutable
strict
parallel safe
return agui_internal.json_unguard(agui_internal.json_guarded_from_jsonb(document));

comment on function agui_internal.json_from_jsonb(jsonb) is
    'The JSON text of a jsonb that agui_internal.json_to_jsonb made, patched or not.';

revoke execute on function agui_internal.json_from_jsonb(jsonb) from public;
