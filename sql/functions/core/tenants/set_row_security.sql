create or replace function agui_internal.set_row_security(wanted boolean)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    protected record;
begin
    for protected in
        select
            owned.name,
            kept.key,
            kept.range,
            class.relrowsecurity,
            exists (select from pg_policy where polrelid = class.oid and polname = 'agui_scope') as has_policy,
            exists (select from pg_policy where polrelid = class.oid and polname <> 'agui_scope') as has_others
        from agui_internal.installed() as installed
        cross join unnest(installed.objects) as object (key)
        cross join lateral (select split_part(object.key, ' ', 2) as name where object.key like 'table %') as owned
        join pg_class as class
            on class.oid = to_regclass(owned.name)
        join pg_attribute as attribute
            on attribute.attrelid = class.oid and not attribute.attisdropped
        join (values
            ('thread_key', 'thread_key', 'agui_internal.caller'),
            ('erased_key', 'erased_key', 'agui_internal.erased_caller'),
            -- A row for one scope or for all: every role that has a scope sees the latter.
            (
                'is_all', 'case when is_all then (select own.low from agui_internal.caller as own) else agui_internal.first_key(scope) end',
                'agui_internal.caller'
            )
        ) as kept (by, key, range)
            on kept.by = attribute.attname
        order by owned.name
    loop
        if wanted and not protected.has_policy then
            -- Each half is evaluated once for each statement, and both are one condition of an
            -- index.
            execute format(
                'create policy agui_scope on %1$s for select using ('
                    '%2$s >= (select own.low from %3$s as own) and %2$s <= (select own.high from %3$s as own))',
                protected.name, protected.key, protected.range
            );
        elsif not wanted and protected.has_policy then
            execute format('drop policy agui_scope on %s', protected.name);
        end if;
        if wanted and not protected.relrowsecurity then
            execute format('alter table %s enable row level security', protected.name);
        elsif not wanted and protected.has_policy and protected.relrowsecurity and not protected.has_others then
            execute format('alter table %s disable row level security', protected.name);
        end if;
    end loop;
    if agui_internal.has_row_security() <> wanted then
        execute format(
            'create or replace function agui_internal.has_row_security() returns boolean language sql stable parallel safe return %s',
            wanted::text
        );
    end if;
end
$$;

comment on function agui_internal.set_row_security(boolean) is
    'Turns row-level security on or off: the policy agui_scope on each table of the install that '
    'distinguishes scopes, and agui_internal.has_row_security(). The function changes only what '
    'differs, so it also repairs an incomplete state.';

revoke execute on function agui_internal.set_row_security(boolean) from public;
