create or replace function agui_internal.changed_objects(out object text, out change text)
returns setof record
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select
        coalesce(recorded.object, present.object),
        case
            when present.object is null then 'missing'
            when recorded.object is null then 'added'
            else 'changed'
        end
    from agui_internal.installed_object as recorded
    full join agui_internal.catalog_objects() as present
        on present.object = recorded.object
    where present.definition is distinct from recorded.definition
        -- After a restore without data nothing is recorded, and hashes of another major version
        -- cannot be compared.
        and exists (
            select from agui_internal.installed_object as reference
            where reference.server_major = current_setting('server_version_num')::int / 10000
        )
    order by 1
$$;

comment on function agui_internal.changed_objects() is
    'The objects of the install that differ from what the migrations left: changed, missing, or '
    'added (a function with the name of an installed one).';

revoke execute on function agui_internal.changed_objects() from public;
