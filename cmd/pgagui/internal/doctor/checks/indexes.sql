-- the indexes are valid, and those of the queues are small
select
    'error' as severity,
    format('the index %s is invalid: queries do not use it', index.indexrelid::regclass) as problem,
    format('reindex index concurrently %s', index.indexrelid::regclass) as advice
from pg_catalog.pg_index as index
join pg_catalog.pg_class as relation
    on relation.oid = index.indrelid
where relation.relnamespace = 'agui'::regnamespace and not index.indisvalid
union all
-- An entry takes 24 bytes, a page half full of them holds 170. Indexes of queues lose and gain entries all the time.
select
    'warning',
    format(
        'the index %s takes %s for about %s entries',
        class.oid::regclass,
        pg_catalog.pg_size_pretty(pg_catalog.pg_relation_size(class.oid)),
        greatest(class.reltuples, 0)::bigint
    ),
    format('reindex index concurrently %s', class.oid::regclass)
from pg_catalog.pg_index as index
join pg_catalog.pg_class as class
    on class.oid = index.indexrelid
where class.relnamespace = 'agui'::regnamespace
and class.relname in ('run_in_progress', 'run_to_compact', 'run_to_repack')
and pg_catalog.pg_relation_size(class.oid) > 1048576 + 240 * greatest(class.reltuples, 0)
