create or replace function agui_internal.unarchive_rows(thread_key uuid, table_name text, columns text[], items json)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read them whole for each thread.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set datestyle = 'ISO'
set timezone = 'UTC'
as $$
declare
    listed record;
begin
    perform agui_internal.own_key(thread_key);
    perform
    from agui.thread as thread
    where thread.thread_key = unarchive_rows.thread_key and thread.xmin = pg_current_xact_id()::xid;
    if not found then
        raise exception using
            errcode = '55000',
            message = format('the thread with key %s was not created by this transaction', thread_key),
            hint = 'Call agui_internal.begin_unarchive first.';
    end if;
    select * into listed from agui_internal.archived_tables() as kept where kept.name = unarchive_rows.table_name;
    perform agui_internal.refuse_unknown_columns(table_name, columns, listed.columns);

    execute format(
        'insert into %s (%s) select %s from ('
            'select %s from json_array_elements($2) with ordinality as item (texts, place) '
            'cross join lateral (select array_agg(value order by ordinality) from json_array_elements_text(item.texts) with ordinality) as read (texts) '
            'order by item.place) as given%s',
        listed.name,
        (
            select string_agg(format('%I', target.name), ', ' order by target.place)
            from (
                select name, place from unnest(columns) with ordinality as given (name, place)
                union all
                select made.name, 1000 + made.place from jsonb_each_text(listed.made) with ordinality as made (name, expression, place) where made.expression is not null
                union all
                select 'thread_key', 2000 where not listed.made ? 'erased_key'
            ) as target
        ),
        (
            select string_agg(source.expression, ', ' order by source.place)
            from (
                select format('given.%I', name), place from unnest(columns) with ordinality as given (name, place)
                union all
                select made.expression, 1000 + made.place from jsonb_each_text(listed.made) with ordinality as made (name, expression, place) where made.expression is not null
                union all
                select '$1', 2000 where not listed.made ? 'erased_key'
            ) as source (expression, place)
        ),
        (
            select string_agg(format('read.texts[%s]::%s as %I', given.place, listed.types[array_position(listed.columns, given.name)], given.name), ', ' order by given.place)
            from unnest(columns) with ordinality as given (name, place)
        ),
        -- A thread that was erased here before has its tombstones.
        case when listed.made ? 'erased_key' then ' on conflict do nothing' end
    ) using thread_key, items;
end
$$;

comment on function agui_internal.unarchive_rows(uuid, text, text[], json) is
    'Stores rows of an archive (agui_internal.archived_rows) in a thread that '
    'agui_internal.begin_unarchive created in the same transaction. 42703: the archive is newer than '
    'this database; 55000: no such thread was created.';

revoke execute on function agui_internal.unarchive_rows(uuid, text, text[], json) from public;
