-- Whole threads as rows for an archive, and back into another database. docs/erasure.md says how to
-- use it.
--
--    archived_tables    the only list of what an archive has
--    archived_rows      the rows of a thread: table, columns, values as text
--    begin_unarchive    creates the row of the thread, under its lock
--    unarchive_rows     adds the others, only to a thread that its own transaction created
--    finish_unarchive   checks
--
-- - Columns come from the catalog, so a new column is archived without a change. A test fails for a
--   table or column that is in no archive and not derived.
-- - Rows are copied, not appended: agui.append gives seqs and times and decides much. A copied row
--   is equal, and a chain holds. No role may write to tables, so these functions do, for
--   agui_maintainer.
-- - Values travel by name and as text, from any version into any newer one. JSON is in JSON
--   strings, which keep every byte.
-- - content_digests hashes what a thread says: events with seqs and times, inputs, the rows of the
--   other tables. Repack and compaction do not change it. So it tells whether an archive is up to
--   date, whether a thread is there already, and whether what was stored is what was archived.
-- - What depends on the key or the database is computed again: prints of parts, the scope's half of
--   keys, the salted key of tombstones, run.changed_in.

-- role: maintainer
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

comment on function agui_internal.archived_rows is
    'The rows of a thread that an archive has (agui_internal.archived_tables), each as a JSON array '
    'of the texts of its values.';

-- role: maintainer
create or replace function agui_internal.begin_unarchive(scope text, thread_id text, created_at timestamptz)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.own_thread_key(scope, thread_id);
begin
    -- A thread may have no run: the name stands for one.
    perform agui_internal.inspect_ids(thread_id, 'run', scope, 'unarchive');
    perform agui_internal.lock_thread(key);
    perform agui_internal.refuse_erased(key, 'unarchive');
    perform
    from agui_internal.claim as claim
    where claim.thread_key = key and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp();
    if found then
        raise exception using
            errcode = 'UI006',
            message = 'unarchive: a run of the thread is claimed',
            hint = 'Wait until the run has ended, or release the claim.';
    end if;
    if not agui_internal.ensure_thread(key, scope, thread_id, created_at) then
        raise exception using
            errcode = '23505',
            message = 'unarchive: the thread exists already';
    end if;
    return key;
end
$$;

comment on function agui_internal.begin_unarchive is
    'Creates a thread for the rows of an archive, and returns its key. The transaction goes on with '
    'agui_internal.unarchive_rows and ends with agui_internal.finish_unarchive. UI006: a run of it '
    'is claimed; UI008, UI011: its ids; UI014: it was erased; 23505: it exists.';

-- role: maintainer
create or replace function agui_internal.finish_unarchive(thread_key uuid, tables jsonb, digests jsonb)
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
as $$
declare
    problem text;
begin
    perform agui_internal.own_key(thread_key);
    perform agui_internal.rebuild_activity(thread_key);
    select string_agg(name, ', ' order by name) into problem
    from jsonb_each(agui_internal.content_digests(thread_key, tables)) as stored (name, digest)
    full join jsonb_each(digests) as expected (name, digest) using (name)
    -- Tombstones of this database may come to those of the archive.
    where stored.digest is distinct from expected.digest and name <> 'agui.erasure';
    if problem is not null then
        raise exception using
            errcode = 'data_corrupted',
            message = format('what is stored of the thread with key %s is not what was archived: %s', thread_key, problem);
    end if;
    select verified.problem into problem
    from agui_internal.verify_log(thread_key) as verified
    where verified.severity = 'damage'
    limit 1;
    if found then
        raise exception using
            errcode = 'data_corrupted',
            message = format('the archived thread with key %s is damaged: %s', thread_key, problem),
            hint = 'Run "pgagui verify" where the archive comes from.';
    end if;
end
$$;

comment on function agui_internal.finish_unarchive is
    'Checks a thread that was stored by agui_internal.unarchive_rows: its rows have the hashes that '
    'they had in the source (agui_internal.content_digests), and agui_internal.verify_log finds no '
    'damage. XX001: otherwise. The caller then commits.';

-- role: maintainer
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

comment on function agui_internal.content_digests is
    'A hash of the rows of a thread in each of these tables ({"agui.run": ["run_no", …], …}), over '
    'these columns, and with_log hashes of its events and of its inputs. They are the same for equal '
    'threads, whatever agui.repack and compaction have done. Null: there is no such thread.';

create or replace function agui_internal.row_as_json(columns text[])
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select 'json_build_array(' || string_agg(format('stored.%I::text', listed.name), ', ' order by listed.place) || ')'
    from unnest(columns) with ordinality as listed (name, place)
$$;

comment on function agui_internal.row_as_json is
    'An expression that gives a row called stored as a JSON array of the texts of these columns.';

create or replace function agui_internal.rows_of_thread(made jsonb)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select case when made ? 'erased_key' then 'stored.erased_key = agui_internal.erasure_key($1)' else 'stored.thread_key = $1' end
$$;

comment on function agui_internal.rows_of_thread is
    'The condition for rows called stored that belong to the thread with the key $1, in a table of '
    'agui_internal.archived_tables, given its column made.';

-- role: maintainer
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

comment on function agui_internal.unarchive_rows is
    'Stores rows of an archive (agui_internal.archived_rows) in a thread that '
    'agui_internal.begin_unarchive created in the same transaction. 42703: the archive is newer than '
    'this database; 55000: no such thread was created.';

create or replace function agui_internal.archived_tables()
returns table (place int, name text, columns text[], types text[], sort text, made jsonb)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- In PL/pgSQL, which keeps the plan: an archive calls this for each thread.
    return query
        select
            listed.place, listed.name,
            array_agg(attribute.attname::text order by attribute.attnum),
            array_agg(format_type(attribute.atttypid, attribute.atttypmod) order by attribute.attnum),
            listed.sort, listed.made
        from (values
            -- Parents come before children, as the foreign keys need it.
            (1, 'agui.run', 'run_no', '{"n": null, "log_bytes": null, "repacked_at": null, "changed_in": "pg_current_xact_id()"}'::jsonb),
            (2, 'agui.run_input', 'run_no', '{}'),
            (3, 'agui.input_part', 'kind, part_no',
                '{"print": "agui_internal.part_print(uuid_send($1) || convert_to(given.kind, ''UTF8''), given.body::text)"}'),
            (4, 'agui.batch', 'first_seq', '{}'),
            (5, 'agui.thread_activity', 'thread_key',
                '{"scope_key": "agui_internal.scope_key($1)", "written_in": null, "writes": null,
                  "active_at": "(select agui_internal.active_at(thread) from agui.thread as thread where thread.thread_key = $1)"}'),
            (6, 'agui.session_key', 'key collate "C"', '{}'),
            (7, 'agui.session_state', 'key collate "C", version', '{}'),
            (8, 'agui.checkpoint', 'checkpoint_no', '{}'),
            (9, 'agui.channel', 'channel_no', '{}'),
            (10, 'agui.channel_part', 'channel_no, part_no',
                '{"print": "agui_internal.part_print(uuid_send($1) || int4send(given.channel_no), given.body::text)"}'),
            (11, 'agui.channel_value', 'channel_no, version', '{}'),
            (12, 'agui.checkpoint_write', 'checkpoint_no, task_id, place', '{}'),
            (13, 'agui.hold', 'thread_key', '{}'),
            (14, 'agui.erasure', 'erased_at', '{"erased_key": "agui_internal.erasure_key($1)", "thread_uid": null, "erased_in": null}'),
            (15, 'agui.agent_error', 'run_no', '{}')
        ) as listed (place, name, sort, made)
        join pg_attribute as attribute
            on attribute.attrelid = to_regclass(listed.name) and attribute.attnum > 0 and not attribute.attisdropped
        where attribute.attname <> 'thread_key' and not listed.made ? attribute.attname
        group by listed.place, listed.name, listed.sort, listed.made
        order by listed.place;
end
$$;

comment on function agui_internal.archived_tables is
    'The tables whose rows an archive of a thread has, in an order that foreign keys accept, and '
    'their columns with their types. made has the columns that depend on the database or on the key '
    'of the thread: the expression that makes each of them ($1 is the key, given the row), or null '
    'for its default. What is derived from these tables is not archived.';

create or replace function agui_internal.refuse_unknown_columns(table_name text, columns text[], known text[])
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- known is null for a table that is not archived.
    if (columns <@ known) is not true then
        raise exception using
            errcode = '42703',
            message = format(
                'the archive has columns of %s that this database does not have: %s', table_name,
                (select string_agg(given.name, ', ') from unnest(columns) as given (name) where (given.name = any (known)) is not true)
            ),
            hint = 'A newer version wrote the archive. Run "pgagui migrate up" of that version first.';
    end if;
end
$$;

comment on function agui_internal.refuse_unknown_columns is
    'Raises 42703 if an archive has columns of a table that are not among the known ones, those of '
    'agui_internal.archived_tables.';
