create or replace function agui_internal.privilege_changes()
returns setof text
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    with owned as (
        select split_part(owned.object, ' ', 1) as kind, split_part(owned.object, ' ', 2) as name
        from agui_internal.installed() as installed
        cross join unnest(installed.objects) as owned (object)
    ),
    list (object, privilege_suffix, owner, privileges) as (
        select format('schema %I', nspname), '', nspowner, nspacl
        from pg_namespace
        where nspname in ('agui', 'agui_internal')
        union all
        select format('table %s', owned.name), '', class.relowner, class.relacl
        from owned
        join pg_class as class
            on class.oid = to_regclass(owned.name)
        where owned.kind in ('table', 'view')
        union all
        select format('table %s', owned.name), format(' (%I)', attribute.attname), class.relowner, attribute.attacl
        from owned
        join pg_class as class
            on class.oid = to_regclass(owned.name)
        join pg_attribute as attribute
            on attribute.attrelid = class.oid and attribute.attacl is not null
        where owned.kind in ('table', 'view')
        union all
        select
            format('routine %s', routine.oid::regprocedure), '', routine.proowner,
            coalesce(routine.proacl, acldefault('f', routine.proowner))
        from owned
        join pg_namespace as namespace
            on namespace.nspname = split_part(owned.name, '.', 1)
        join pg_proc as routine
            on routine.pronamespace = namespace.oid and routine.proname = split_part(owned.name, '.', 2)
        where owned.kind = 'routine'
    ),
    present as (
        select
            lower(granted.privilege_type) || list.privilege_suffix as privilege,
            list.object,
            case granted.grantee when 0 then 'public' else granted.grantee::regrole::text end as grantee
        from list
        cross join aclexplode(list.privileges) as granted
        where granted.grantor = list.owner
    ),
    expected as (
        select privilege, object, grantee
        from agui_internal.expected_privileges()
        where to_regrole(grantee) is not null
    ),
    change (statement) as (
        select format('revoke %s on %s from %s', privilege, object, string_agg(grantee, ', ' order by grantee))
        from (
            select * from present
            where grantee in ('public', 'agui_reader', 'agui_writer', 'agui_worker', 'agui_maintainer', 'agui_recorder', 'agui_diagnoser', 'pg_monitor')
            except
            select * from expected
        ) as surplus
        group by privilege, object
        union all
        select format('grant %s on %s to %s', privilege, object, string_agg(grantee, ', ' order by grantee))
        from (select * from expected except select * from present) as missing
        group by privilege, object
    )
    select change.statement
    from change
    order by change.statement
$$;

comment on function agui_internal.privilege_changes is
    'The statements that change the privileges on the objects of the install to those of '
    'agui_internal.expected_privileges(), for the roles that exist. Privileges of other roles are '
    'not changed.';

create or replace function agui_internal.expected_privileges(out privilege text, out object text, out grantee text)
returns setof record
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    with rule (privileges, objects, grantees) as (values
        (
            array['usage'],
            array['schema agui', 'schema agui_internal'],
            array['agui_reader', 'agui_writer', 'agui_worker', 'agui_maintainer', 'pg_monitor']
        ),
        (array['usage'], array['schema agui'], array['agui_recorder']),
        -- Only the owner writes to tables: the functions that write have the rights of the owner.
        (
            array['select'],
            array[
                'table agui.thread', 'table agui.run', 'table agui.batch', 'table agui.run_input', 'table agui.input_part', 'table agui.input',
                'table agui.thread_activity', 'table agui.message_version', 'table agui.message',
                'table agui.snapshot', 'table agui.session_key', 'table agui.session_state', 'table agui.checkpoint',
                'table agui.checkpoint_write', 'table agui.channel', 'table agui.channel_part', 'table agui.channel_value',
                'table agui.projected_run', 'table agui.projected_call', 'table agui.projected_interrupt', 'table agui.projected_usage', 'table agui.message_text',
                'table agui.run_fact', 'table agui.tool_fact', 'table agui.interrupt_fact', 'table agui.usage_fact',
                'table agui.retention', 'table agui.hold', 'table agui.held_thread', 'table agui.event', 'table agui.quarantine', 'table agui.tenant', 'table agui_internal.caller', 'table agui_internal.erased_caller',
                'table agui_internal.chained_scope', 'table agui_internal.search', 'table agui_internal.usage_mapping', 'table agui_internal.node', 'table agui_internal.bucket', 'table agui_internal.moved_thread', 'table agui_internal.installed_object', 'table agui_internal.job_note'
            ],
            array['agui_reader']
        ),
        (
            array['select'],
            array['table agui.setting', 'table agui_internal.setting', 'table agui_internal.uptime'],
            array['agui_reader', 'pg_monitor']
        ),
        (array['select'], array['table agui.erasure'], array['agui_maintainer']),
        (array['select'], array['table agui.agent_error'], array['agui_diagnoser'])
    ),
    -- Whom the functions are for that say it above them ("-- role: writer"). internal/sqlgen writes these lines.
    listed (grantee, routines) as (values
        ('agui_maintainer', array[
            'agui.add_webhook', 'agui.apply_retention', 'agui.disable_chain', 'agui.disable_search',
            'agui.drop_webhook_failures', 'agui.enable_chain', 'agui.enable_search', 'agui.enable_webhook',
            'agui.erase', 'agui.erase_older', 'agui.import_events', 'agui.lift_erasure',
            'agui.lift_hold', 'agui.map_usage', 'agui.rebuild_facts', 'agui.rebuild_snapshots',
            'agui.remove_retention', 'agui.remove_webhook', 'agui.retry_webhook_failures', 'agui.rotate_webhook_secret',
            'agui.set_hold', 'agui.set_retention', 'agui.set_setting', 'agui.take_over_webhooks',
            'agui.unmap_usage', 'agui.webhook_failures', 'agui.webhooks', 'agui_internal.archived_rows',
            'agui_internal.begin_move', 'agui_internal.begin_move_step', 'agui_internal.begin_step', 'agui_internal.begin_unarchive',
            'agui_internal.content_digests', 'agui_internal.erase_thread', 'agui_internal.fence_threads', 'agui_internal.finish_unarchive',
            'agui_internal.forget_moved_threads', 'agui_internal.hand_over_buckets', 'agui_internal.keep_threads_of_scope', 'agui_internal.pin_scope',
            'agui_internal.pins', 'agui_internal.readers_of_thread', 'agui_internal.receive_buckets', 'agui_internal.receive_readers',
            'agui_internal.receive_thread', 'agui_internal.remove_moved_thread', 'agui_internal.retain_thread', 'agui_internal.take_back_thread',
            'agui_internal.threads_of_scope_elsewhere', 'agui_internal.unarchive_rows', 'agui_internal.webhook_endpoints'
        ]),
        ('agui_reader', array[
            'agui.cluster_map', 'agui.consumers', 'agui.lag', 'agui.poll',
            'agui.stats', 'agui_internal.known_settings', 'agui_internal.refuse_damaged_log', 'agui_internal.webhook_states'
        ]),
        ('agui_recorder', array[
            'agui.append_many', 'agui.cluster_map', 'agui.keep_alive', 'agui.poll'
        ]),
        ('agui_worker', array[
            'agui.compact', 'agui.compact_running', 'agui.project', 'agui.reap',
            'agui.repack', 'agui.retry', 'agui_internal.add_messages', 'agui_internal.add_snapshot',
            'agui_internal.add_webhook_requests', 'agui_internal.apply_rules', 'agui_internal.begin_step', 'agui_internal.choose_thread_to_compact',
            'agui_internal.choose_to_compact', 'agui_internal.claim_webhook_requests', 'agui_internal.compact_running_run', 'agui_internal.compact_sequence',
            'agui_internal.drop_needless_snapshot', 'agui_internal.drop_snapshots', 'agui_internal.fill_title', 'agui_internal.find_ends',
            'agui_internal.forget_claims', 'agui_internal.forget_ended_runs', 'agui_internal.hold_thread', 'agui_internal.mark_compacted',
            'agui_internal.note_attempt', 'agui_internal.note_failure', 'agui_internal.note_interruption', 'agui_internal.note_success',
            'agui_internal.note_uptime', 'agui_internal.note_webhook_request', 'agui_internal.project_step', 'agui_internal.prune_snapshots',
            'agui_internal.reap_run', 'agui_internal.refuse_damaged_log', 'agui_internal.repack_run', 'agui_internal.settle_calls',
            'agui_internal.split_inputs', 'agui_internal.split_thread_inputs', 'agui_internal.take_back_attempt', 'agui_internal.webhook_endpoints'
        ]),
        ('agui_writer', array[
            'agui.abandon', 'agui.append', 'agui.append_many', 'agui.claim_run',
            'agui.copy_checkpoints', 'agui.keep_agent_error', 'agui.keep_alive', 'agui.mark_read',
            'agui.move_consumer', 'agui.prune_checkpoints', 'agui.put_checkpoint', 'agui.put_checkpoint_writes',
            'agui.release_claim', 'agui.remove_checkpoints', 'agui.remove_consumer', 'agui.remove_run_checkpoints',
            'agui.remove_session_state', 'agui.request_stop', 'agui.save_checkpoint', 'agui.save_session',
            'agui.save_session_state', 'agui.save_sessions', 'agui.set_thread', 'agui.settle'
        ]),
        ('none', array[
            'agui_internal.erased_after', 'agui_internal.erased_range', 'agui_internal.erasure_key', 'agui_internal.uid_of_thread'
        ]),
        ('pg_monitor', array[
            'agui.consumers', 'agui.lag', 'agui.stats', 'agui_internal.known_settings',
            'agui_internal.webhook_states'
        ])
    ),
    -- All others that cannot write are for readers.
    stated (routine, grantee) as (
        select routine, listed.grantee
        from listed
        cross join unnest(listed.routines) as routine
        union all
        values ('agui_internal.installed', 'agui_reader'), ('agui_internal.installed', 'pg_monitor') -- which a migration makes
    )
    select privilege.name, object.name, grantee.name
    from rule
    cross join unnest(rule.privileges) as privilege (name)
    cross join unnest(rule.objects) as object (name)
    cross join unnest(rule.grantees) as grantee (name)
    union all
    select 'execute', format('routine %s', routine.oid::regprocedure), coalesce(stated.grantee, 'agui_reader')
    from agui_internal.installed() as installed
    cross join unnest(installed.objects) as owned (object)
    join pg_namespace as namespace
        on namespace.nspname in ('agui', 'agui_internal')
    join pg_proc as routine
        on routine.pronamespace = namespace.oid and owned.object = format('routine %s.%s', namespace.nspname, routine.proname)
    left join stated
        on stated.routine = format('%s.%s', namespace.nspname, routine.proname)
    where routine.prorettype <> 'trigger'::regtype and (stated.grantee <> 'none' or stated.grantee is null and routine.provolatile <> 'v')
$$;

comment on function agui_internal.expected_privileges is
    'The privileges that agui.grant_access() establishes.';
