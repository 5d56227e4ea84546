-- PL/pgSQL caches its plans, while its callers are inlined: each heartbeat reads settings several
-- times.
create or replace function agui_internal.setting_value(name text)
returns numeric
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    value constant numeric := (select setting.value from agui_internal.setting as setting where setting.name = setting_value.name);
begin
    if value is not null then
        return value;
    end if;
    return (select known.default_value from agui_internal.known_settings() as known where known.name = setting_value.name);
end
$$;

comment on function agui_internal.setting_value(text) is
    'The value of a setting, in its unit; the default if its row is missing.';

revoke execute on function agui_internal.setting_value(text) from public;
