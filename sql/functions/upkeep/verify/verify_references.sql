create or replace function agui_internal.verify_references(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
set search_path = pg_catalog, pg_temp
-- In a large store the estimates are high, and compiling would take most of the time.
set jit = off
as $$
begin
    return query
        with stored as (
            select coalesce(range_agg(int4range(message.message_no, message.message_no, '[]')), '{}') as message_nos
            from agui.message as message
            where message.thread_key = verify_references.thread_key
        ),
        held as (
            select snapshot.run_no, run.run_id, coalesce(range_agg(part.message_nos), '{}') as message_nos
            from agui.snapshot as snapshot
            left join agui.run as run
                on run.thread_key = snapshot.thread_key and run.run_no = snapshot.run_no
            left join unnest(snapshot.message_nos) as part (message_nos) on true
            where snapshot.thread_key = verify_references.thread_key
            group by snapshot.run_no, run.run_id
        ),
        problem as (
            select 1 as kind, held.run_no as place, held.run_id,
                format('there is a snapshot of run number %s, which does not exist', held.run_no) as text
            from held
            where held.run_id is null
            union all
            select 2, held.run_no, held.run_id,
                format('the snapshot points to message versions that do not exist: %s', held.message_nos - stored.message_nos)
            from held
            cross join stored
            where not held.message_nos <@ stored.message_nos
            union all
            select 3, 0, null, format('no snapshot holds the message versions %s', leaked.message_nos)
            from (
                select stored.message_nos - coalesce((select range_agg(held.message_nos) from held), '{}')
                from stored
            ) as leaked (message_nos)
            where not isempty(leaked.message_nos)
            union all
            select 4, version.message_no, null,
                format('message version %s points to a part of inputs that does not exist, number %s', version.message_no, version.part_no)
            from agui.message_version as version
            where version.thread_key = verify_references.thread_key
                and version.part_no is not null
                and not exists (
                    select
                    from agui.input_part as part
                    where part.thread_key = version.thread_key and part.kind = 'message' and part.part_no = version.part_no
                )
            union all
            select 4, message.message_no, null, format('message version %s has another id or role than its body', message.message_no)
            from agui.message as message
            where message.thread_key = verify_references.thread_key
                and message.body is not null
                and not agui_internal.has_id_and_role(message.body, message.message_id, message.role)
            union all
            -- Compaction processed the run and marked it without the events that its writer appended
            -- after the end in the meantime.
            select 5, run.run_no, run.run_id,
                format('the run''s row counts %s events, its log has %s', run.n, log.n)
            from agui.run as run
            join (
                select batch.run_no, sum(batch.n) as n
                from agui.batch as batch
                where batch.thread_key = verify_references.thread_key
                group by batch.run_no
            ) as log on log.run_no = run.run_no
            where run.thread_key = verify_references.thread_key and run.n < log.n
            union all
            select 6, 0, null,
                case
                    when activity.thread_key is null then 'the thread is missing in lists: it has no row in agui.thread_activity'
                    when activity.scope_key <> agui_internal.scope_key(thread.thread_key) then 'the thread is in the lists of another scope'
                    else format('in lists the thread was last active at %s, a run of it began or ended later', activity.active_at)
                end
            from agui.thread as thread
            left join agui.thread_activity as activity
                on activity.thread_key = thread.thread_key
            where thread.thread_key = verify_references.thread_key
                and (
                    activity.scope_key is distinct from agui_internal.scope_key(thread.thread_key)
                    or activity.active_at < agui_internal.active_at(thread)
                )
        )
        select problem.run_id, problem.text, 'damage'
        from problem
        order by problem.kind, problem.place;
    if not agui_internal.waits_for_facts(thread_key) then
        return query select * from agui_internal.verify_facts(thread_key);
    end if;
end
$$;

comment on function agui_internal.verify_references(uuid) is
    'The inconsistencies between the snapshots of a thread, their runs and the message versions '
    'that they share; runs of which compaction did not count all events; and a wrong entry of the '
    'thread in lists.';

revoke execute on function agui_internal.verify_references(uuid) from public;
