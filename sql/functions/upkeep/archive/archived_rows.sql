create or replace function agui_internal.archived_rows(thread_key uuid, out table_name text, out item text)
returns setof record
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read them whole for each thread.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
-- So that the text of a value is the same in each database and session.
set datestyle = 'ISO'
set timezone = 'UTC'
set bytea_output = 'hex'
as $$
declare
    key    constant uuid := agui_internal.visible_key(thread_key);
    listed record;
begin
    for listed in select * from agui_internal.archived_tables() as kept order by kept.place
    loop
        return query execute format(
            'select %L::text, %s::text from %s as stored where %s order by %s',
            listed.name, agui_internal.row_as_json(listed.columns), listed.name, agui_internal.rows_of_thread(listed.made), listed.sort
        ) using key;
    end loop;
end
$$;

comment on function agui_internal.archived_rows(uuid) is
    'The rows of a thread that an archive has (agui_internal.archived_tables), each as a JSON array '
    'of the texts of its values.';

revoke execute on function agui_internal.archived_rows(uuid) from public;
