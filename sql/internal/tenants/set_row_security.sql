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
            attribute.attname as key,
            case attribute.attname when 'thread_key' then 'agui_internal.caller' else 'agui_internal.own_erased_keys()' end as range,
            class.relrowsecurity,
            exists (select from pg_policy where polrelid = class.oid and polname = 'agui_scope') as has_policy,
            exists (select from pg_policy where polrelid = class.oid and polname <> 'agui_scope') as has_others
        from agui_internal.installed() as installed
        cross join unnest(installed.objects) as object (key)
        cross join lateral (select split_part(object.key, ' ', 2) as name where object.key like 'table %') as owned
        join pg_class as class
            on class.oid = to_regclass(owned.name)
        join pg_attribute as attribute
            on attribute.attrelid = class.oid and attribute.attname in ('thread_key', 'erased_key') and not attribute.attisdropped
        order by owned.name
    loop
        if wanted and not protected.has_policy then
            -- Each half is evaluated once a statement, and both are one condition of an index.
            execute format(
                'create policy agui_scope on %1$s for select using ('
                    '%2$I >= (select own.low from %3$s as own) and %2$I <= (select own.high from %3$s as own))',
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
    'Turns row-level security on or off: the policy agui_scope on each table of the install that has thread keys, and '
    'agui_internal.has_row_security(). What is right already is not touched, so it puts right what is not.';

revoke execute on function agui_internal.set_row_security(boolean) from public;
