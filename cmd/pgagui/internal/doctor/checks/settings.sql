-- the settings of the server that pgagui depends on
with setting as (
    select
        name,
        setting as value,
        coalesce(unit, '') as unit,
        case when setting ~ '^-?[0-9]+$' then setting::bigint end as number
    from pg_catalog.pg_settings
)
select
    advised.severity,
    format('%s is %s: %s', setting.name, pg_catalog.current_setting(setting.name), advised.reason) as problem,
    format('set %s = %s', setting.name, advised.value) as advice
from setting
join (
    values
    ('fsync', 'error', 'a crash of the machine can lose or damage everything', 'on'),
    ('full_page_writes', 'error', 'a crash of the machine can damage pages', 'on'),
    ('autovacuum', 'error', 'tables and indexes grow without bounds, and transaction ids run out', 'on'),
    ('track_counts', 'error', 'autovacuum has no figures to go by', 'on'),
    ('synchronous_commit', 'note', 'a crash loses the events of the last moments, which append has confirmed', 'on'),
    ('max_stack_depth', 'error', 'events that are nested 1,000 deep, which append takes, may not be readable', '''2MB'''),
    ('default_transaction_read_only', 'error', 'nothing can be appended', 'off'),
    ('default_transaction_isolation', 'warning', 'concurrent appends to a thread fail with 40001 and have to be repeated', '''read committed'''),
    ('shared_buffers', 'warning', 'the indexes of a busy store do not fit', 'a quarter of the memory'),
    ('max_locks_per_transaction', 'warning', 'an append_many with many threads can run out of locks', '64'),
    ('log_parameter_max_length_on_error', 'note', 'the events and documents of calls that fail go into the server''s log', '0')
) as advised (name, severity, reason, value)
    on advised.name = setting.name
where case setting.name
    when 'synchronous_commit' then setting.value = 'off'
    when 'max_stack_depth' then setting.number < 2048
    when 'default_transaction_read_only' then setting.value = 'on'
    when 'default_transaction_isolation' then setting.value <> 'read committed'
    when 'shared_buffers' then setting.number * 8192 < 134217728
    when 'max_locks_per_transaction' then setting.number < 64
    when 'log_parameter_max_length_on_error' then setting.number <> 0
    else setting.value = 'off'
end
order by advised.severity, setting.name
