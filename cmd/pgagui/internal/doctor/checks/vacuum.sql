-- autovacuum keeps up with the tables
select
    'warning' as severity,
    format('autovacuum is off for the table %s', class.oid::regclass) as problem,
    format('alter table %s reset (autovacuum_enabled)', class.oid::regclass) as advice
from pg_catalog.pg_class as class
where class.relnamespace = 'agui'::regnamespace
and class.reloptions && array['autovacuum_enabled=false', 'autovacuum_enabled=off']
union all
select
    'warning',
    format(
        'the table %s has %s dead rows beside %s live ones, last vacuumed %s',
        relid::regclass,
        n_dead_tup,
        n_live_tup,
        coalesce(date_trunc('second', greatest(last_vacuum, last_autovacuum))::text, 'never')
    ),
    format('vacuum %s; look for old transactions, and lower autovacuum_vacuum_scale_factor of the table', relid::regclass)
from pg_catalog.pg_stat_user_tables
where schemaname = 'agui' and n_dead_tup > 50000 and n_dead_tup > n_live_tup / 2
union all
select
    'error',
    format('the table %s is %s transactions old: the server stops taking writes at 2 billion', class.oid::regclass, pg_catalog.age(class.relfrozenxid)),
    format('vacuum (freeze) %s', class.oid::regclass)
from pg_catalog.pg_class as class
where class.relnamespace = 'agui'::regnamespace
and class.relkind = 'r'
and pg_catalog.age(class.relfrozenxid) > 1000000000
