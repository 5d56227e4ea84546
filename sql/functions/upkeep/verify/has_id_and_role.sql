-- A function of its own, so that what it reads of a large message is freed at once.
create or replace function agui_internal.has_id_and_role(body json, message_id text, role text)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    guarded  constant json := agui_internal.json_guarded(body);
    own_id   constant text := guarded -> 'id';
    own_role constant text := guarded -> 'role';
begin
    return agui_internal.json_string_text(own_id) is not distinct from message_id
        and agui_internal.json_string_text(own_role) is not distinct from role;
end
$$;

comment on function agui_internal.has_id_and_role(json, text, text) is
    'Whether a message has the id and role that the row of its version says.';

revoke execute on function agui_internal.has_id_and_role(json, text, text) from public;
