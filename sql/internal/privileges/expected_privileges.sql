create or replace function agui_internal.expected_privileges(out privilege text, out object text, out grantee text)
returns setof record
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    with rule (privileges, objects, grantees) as (values
        (array['usage'], array['schema agui', 'schema agui_internal'], array['agui_reader', 'agui_writer', 'agui_maintainer', 'pg_monitor']),
        (
            array['select'],
            array[
                'table agui.thread', 'table agui.run', 'table agui.batch', 'table agui.run_input', 'table agui.thread_activity', 'table agui.message',
                'table agui.snapshot', 'table agui.session_key', 'table agui.session_state', 'table agui.checkpoint', 'table agui.erasure',
                'table agui.event', 'table agui.quarantine', 'table agui_internal.installed_object', 'table agui_internal.job_note'
            ],
            array['agui_reader', 'agui_writer']
        ),
        (
            array['insert'],
            array[
                'table agui.thread', 'table agui.run', 'table agui.batch', 'table agui.run_input', 'table agui.thread_activity', 'table agui.message',
                'table agui.snapshot', 'table agui.session_key', 'table agui.session_state', 'table agui.checkpoint', 'table agui_internal.job_note'
            ],
            array['agui_writer']
        ),
        (
            array[
                'update (status)', 'update (last_seq)', 'update (ended_at)', 'update (seen_at)', 'update (has_heartbeat)', 'update (stop_requested_at)',
                'update (stop_reason)', 'update (cut_off_reason)', 'update (n)', 'update (log_bytes)', 'update (repacked_at)'
            ],
            array['table agui.run'],
            array['agui_writer']
        ),
        (
            array[
                'update (through_seq)', 'update (message_nos)', 'update (state)', 'update (interrupts)', 'update (lanes)', 'update (created_at)'
            ],
            array['table agui.snapshot'],
            array['agui_writer']
        ),
        (array['update (last_version)', 'update (saved_at)'], array['table agui.session_key'], array['agui_writer']),
        (array['delete'], array['table agui.message', 'table agui.snapshot', 'table agui.session_state'], array['agui_writer']),
        (array['update'], array['table agui.thread_activity', 'table agui_internal.job_note'], array['agui_writer']),
        (array['delete'], array['table agui_internal.job_note'], array['agui_writer']),
        -- Nothing changes a thread's row; locking it takes the right to.
        (array['update (created_at)'], array['table agui.thread'], array['agui_writer']),

        (
            array['select'],
            array['table agui.stats', 'table agui.lag', 'table agui.setting', 'table agui_internal.setting', 'table agui_internal.uptime'],
            array['agui_reader', 'agui_writer', 'pg_monitor']
        ),
        (array['insert', 'update'], array['table agui_internal.uptime'], array['agui_writer']),
        (array['update (value)'], array['table agui_internal.setting'], array['agui_maintainer']),

        -- To repack and to erase. Tables decide who may: the functions for it are executable by every writer, and of no use to it.
        (
            array['delete'],
            array[
                'table agui.thread', 'table agui.run', 'table agui.batch', 'table agui.run_input', 'table agui.thread_activity',
                'table agui.session_key', 'table agui.checkpoint'
            ],
            array['agui_maintainer']
        ),
        (
            array['update (recorded_at)', 'update (n)', 'update (events)', 'update (earlier_us)'],
            array['table agui.batch'],
            array['agui_maintainer']
        ),
        (
            array['insert', 'update (allowed_at)', 'update (allowed_by)', 'update (scope)', 'update (thread_id)'],
            array['table agui.erasure'],
            array['agui_maintainer']
        )
    )
    select privilege.name, object.name, grantee.name
    from rule
    cross join unnest(rule.privileges) as privilege (name)
    cross join unnest(rule.objects) as object (name)
    cross join unnest(rule.grantees) as grantee (name)
    union all
    select 'execute', format('routine %s', routine.oid::regprocedure), grantee.name
    from agui_internal.installed() as installed
    cross join unnest(installed.objects) as owned (object)
    join pg_namespace as namespace
        on namespace.nspname in ('agui', 'agui_internal')
    join pg_proc as routine
        on routine.pronamespace = namespace.oid and owned.object = format('routine %s.%s', namespace.nspname, routine.proname)
    join (values ('agui_reader'), ('agui_writer'), ('agui_maintainer'), ('pg_monitor')) as grantee (name)
        -- What cannot write is for readers, all the rest for writers. Who imports says when things happened. pg_monitor gets what the
        -- command line and agui.lag call.
        on case grantee.name
            when 'agui_reader' then routine.provolatile <> 'v'
            when 'agui_writer' then routine.proname not in ('grant_access', 'define_settings', 'record_objects', 'import_events', 'set_setting')
            when 'agui_maintainer' then routine.proname in ('import_events', 'set_setting')
            else routine.proname in ('installed', 'lease', 'heartbeat_lease', 'lease_of', 'reachable_since', 'repack_after')
        end
    where routine.prorettype <> 'trigger'::regtype
$$;

comment on function agui_internal.expected_privileges() is 'Who may do what: the privileges that agui.grant_access() sees to.';

revoke execute on function agui_internal.expected_privileges() from public;
