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

comment on function agui_internal.changed_objects is
    'The objects of the install that differ from what the migrations left: changed, missing, or '
    'added (a function with the name of an installed one).';

create or replace function agui_internal.estimated_rows(relation regclass)
returns float8
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select class.reltuples / class.relpages * (pg_relation_size(class.oid) / current_setting('block_size')::int)
    from pg_class as class
    where class.oid = estimated_rows.relation and class.reltuples > 0 and class.relpages > 0
$$;

comment on function agui_internal.estimated_rows is
    'The number of rows of a table as the planner estimates it: the rows of a page at the last '
    'vacuum or analyze, times the pages that it has now. Null: there was none.';

create or replace procedure agui_internal.record_objects()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from agui_internal.installed_object;
    insert into agui_internal.installed_object
    select * from agui_internal.catalog_objects();
end
$$;

comment on procedure agui_internal.record_objects is
    'Records the current definitions of the objects of the install, for '
    'agui_internal.changed_objects(). The migrations call it.';

create or replace function agui_internal.catalog_objects()
returns setof agui_internal.installed_object
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    with owned as (
        select
            split_part(owned.object, ' ', 1) as kind,
            substr(owned.object, strpos(owned.object, ' ') + 1) as name
        from agui_internal.installed() as installed
        cross join unnest(installed.objects) as owned (object)
    ),
    relation as (
        select owned.kind, owned.name, class.oid, class.relkind, class.relpersistence, class.reloptions
        from owned
        join pg_class as class
            on class.oid = to_regclass(owned.name)
        where owned.kind in ('table', 'view', 'index')
    ),
    definition (object, text) as (
        -- The storage parameters of a table belong to its owner, and so do indexes and triggers
        -- that the owner adds.
        select
            format('table %s', relation.name),
            concat_ws(e'\n', relation.relkind, relation.relpersistence, columns.text, constraints.text)
        from relation
        cross join lateral (
            select string_agg(
                concat_ws(' ', attribute.attname, format_type(attribute.atttypid, attribute.atttypmod), attribute.attnotnull,
                    attribute.attidentity, attribute.attgenerated, pg_get_expr(standard.adbin, standard.adrelid)),
                e'\n' order by attribute.attname)
            from pg_attribute as attribute
            left join pg_attrdef as standard
                on standard.adrelid = attribute.attrelid and standard.adnum = attribute.attnum
            where attribute.attrelid = relation.oid and attribute.attnum > 0 and not attribute.attisdropped
        ) as columns (text)
        cross join lateral (
            select string_agg(concat_ws(' ', conname, pg_get_constraintdef(oid)), e'\n' order by conname)
            from pg_constraint
            where conrelid = relation.oid and contype in ('c', 'f', 'p', 'u', 'x')
        ) as constraints (text)
        where relation.kind = 'table'
        union all
        select format('view %s', relation.name), concat_ws(e'\n', relation.reloptions, pg_get_viewdef(relation.oid))
        from relation
        where relation.kind = 'view'
        union all
        select format('index %s', relation.name), concat_ws(e'\n', pg_get_indexdef(relation.oid), index.indisvalid)
        from relation
        join pg_index as index
            on index.indexrelid = relation.oid
        where relation.kind = 'index'
        union all
        select format('trigger %s', owned.name), concat_ws(e'\n', pg_get_triggerdef(trigger.oid), trigger.tgenabled)
        from owned
        join pg_trigger as trigger
            on trigger.tgrelid = to_regclass(split_part(owned.name, ' on ', 2)) and trigger.tgname = split_part(owned.name, ' on ', 1)
        where owned.kind = 'trigger'
        union all
        select
            format('type %s', owned.name),
            concat_ws(e'\n', type.typtype, format_type(type.typbasetype, type.typtypmod), attributes.text)
        from owned
        join pg_type as type
            on type.oid = to_regtype(owned.name)
        cross join lateral (
            select string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod)), e'\n' order by attnum)
            from pg_attribute
            where attrelid = type.typrelid and attnum > 0 and not attisdropped
        ) as attributes (text)
        where owned.kind = 'type'
        union all
        select
            format('%s %s',
                case routine.prokind when 'p' then 'procedure' when 'a' then 'aggregate' else 'function' end, routine.oid::regprocedure),
            case
                when routine.proname in ('has_row_security', 'this_node') then ''  -- their bodies are settings
                when routine.prokind = 'a' then (
                    select concat_ws(' ', aggtransfn, aggfinalfn, aggcombinefn, aggtranstype::regtype, agginitval, routine.proparallel)
                    from pg_aggregate
                    where aggfnoid = routine.oid
                )
                else pg_get_functiondef(routine.oid)
            end
        from owned
        join pg_namespace as namespace
            on namespace.nspname = split_part(owned.name, '.', 1)
        join pg_proc as routine
            on routine.pronamespace = namespace.oid and routine.proname = split_part(owned.name, '.', 2)
        where owned.kind = 'routine'
    )
    select
        definition.object,
        encode(sha256(convert_to(definition.text, 'UTF8')), 'hex'),
        current_setting('server_version_num')::int / 10000
    from definition
$$;

comment on function agui_internal.catalog_objects is
    'A hash of the current definition of each object that agui_internal.installed() names, from '
    'the catalog. Comments, privileges, row-level security, storage settings and objects added by '
    'others are not included. Two major versions of PostgreSQL may print the same definition '
    'differently.';

create or replace function agui_internal.sampled_percent(relation regclass)
returns real
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select case when size.pages > 1000 then (100000.0 / size.pages)::real end
    from (select pg_relation_size(sampled_percent.relation) / current_setting('block_size')::int as pages) as size
$$;

comment on function agui_internal.sampled_percent is
    'The percentage of the pages of a table to read for an estimate: 1,000 pages, whatever its '
    'size. Null: it has no more pages, so read all.';
