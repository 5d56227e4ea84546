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

comment on function agui_internal.archived_tables() is
    'The tables whose rows an archive of a thread has, in an order that foreign keys accept, and '
    'their columns with their types. made has the columns that depend on the database or on the key '
    'of the thread: the expression that makes each of them ($1 is the key, given the row), or null '
    'for its default. What is derived from these tables is not archived.';

revoke execute on function agui_internal.archived_tables() from public;
