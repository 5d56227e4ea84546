create or replace function agui_internal.define_settings()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into agui_internal.setting as stored (name, value, unit, default_value, min_value, max_value, description)
    select known.name, known.default_value, known.unit, known.default_value, known.min_value, known.max_value, known.description
    from agui_internal.known_settings() as known
    -- Compare first: if nothing changes, nothing is written.
    left join agui_internal.setting as current using (name)
    where (current.unit, current.default_value, current.min_value, current.max_value, current.description)
        is distinct from (known.unit, known.default_value, known.min_value, known.max_value, known.description)
    on conflict (name) do update
    set value = case
            when stored.value = stored.default_value then excluded.default_value
            else least(greatest(stored.value, excluded.min_value), excluded.max_value)
        end,
        unit = excluded.unit,
        default_value = excluded.default_value,
        min_value = excluded.min_value,
        max_value = excluded.max_value,
        description = excluded.description;

    insert into agui_internal.erasure_salt (salt)
    select uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
    where not exists (select from agui_internal.erasure_salt)
    on conflict do nothing;
end
$$;

comment on function agui_internal.define_settings() is
    'Adds missing settings with their defaults and updates the definitions of the others. Changed '
    'values are kept. Creates the salt of agui.erasure if it is missing. agui.grant_access() calls '
    'it, and therefore every migration does.';

revoke execute on function agui_internal.define_settings() from public;
