create or replace function agui_internal.content_digests(thread_key uuid, tables jsonb, with_log boolean default true)
returns jsonb
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read them whole for each thread.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
-- As in agui_internal.archived_rows.
set datestyle = 'ISO'
set timezone = 'UTC'
set bytea_output = 'hex'
as $$
declare
    key    constant uuid := agui_internal.visible_key(thread_key);
    listed record;
    digest bytea;
    result jsonb := '{}';
begin
    perform from agui.thread as thread where thread.thread_key = key;
    if not found then
        return null;
    end if;

    for listed in
        select kept.name, kept.sort, kept.made, kept.columns as known, array(select jsonb_array_elements_text(tables -> kept.name)) as columns
        from agui_internal.archived_tables() as kept
        -- Jobs change these rows and keep what they say, which is compared below.
        where tables ? kept.name and kept.name not in ('agui.batch', 'agui.run_input', 'agui.input_part')
        order by kept.place
    loop
        perform agui_internal.refuse_unknown_columns(listed.name, listed.columns, listed.known);
        execute format(
            'select sha256(string_agg(sha256(convert_to(%s::text, ''UTF8'')), null order by %s)) from %s as stored where %s',
            agui_internal.row_as_json(listed.columns), listed.sort, listed.name, agui_internal.rows_of_thread(listed.made)
        ) into digest using key;
        -- A version without the table can compare the thread if it has no rows in it.
        if digest is not null then
            result := result || jsonb_build_object(listed.name, encode(digest, 'hex'));
        end if;
    end loop;

    if with_log then
        select sha256(coalesce(string_agg(
            sha256(
                int8send(batch.first_seq + event.place - 1) || int4send(batch.run_no)
                || timestamptz_send(agui_internal.event_time(batch.recorded_at, batch.earlier_us[event.place]))
                || convert_to(event.payload::text, 'UTF8')
            ),
            null order by batch.first_seq, event.place
        ), ''))
        into digest
        from agui.batch as batch
        cross join lateral json_array_elements(batch.events) with ordinality as event (payload, place)
        where batch.thread_key = key;
        -- The last link of the chain stands for the others.
        digest := sha256(digest || coalesce((
            select batch.hash from agui.batch as batch where batch.thread_key = key order by batch.first_seq desc limit 1
        ), ''));
        result := result || jsonb_build_object('events', encode(digest, 'hex'));

        select sha256(coalesce(string_agg(int4send(given.run_no) || given.hash, null order by given.run_no), ''))
        into digest
        from agui.input as given
        where given.thread_key = key;
        result := result || jsonb_build_object('inputs', encode(digest, 'hex'));
    end if;
    return result;
end
$$;

comment on function agui_internal.content_digests(uuid, jsonb, boolean) is
    'A hash of the rows of a thread in each of these tables ({"agui.run": ["run_no", …], …}), over '
    'these columns, and with_log hashes of its events and of its inputs. They are the same for equal '
    'threads, whatever agui.repack and compaction have done. Null: there is no such thread.';

revoke execute on function agui_internal.content_digests(uuid, jsonb, boolean) from public;
