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
        -- Nothing is recorded after a restore without data, and nothing to compare with on another major version.
        and exists (
            select from agui_internal.installed_object as reference
            where reference.server_major = current_setting('server_version_num')::int / 10000
        )
    order by 1
$$;

comment on function agui_internal.changed_objects() is
    'The objects of the install that are not as the migrations left them: changed, missing, or (a function of the same name as one of the install) added.';

revoke execute on function agui_internal.changed_objects() from public;
