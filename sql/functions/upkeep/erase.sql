-- Erasure of a thread, and which threads are old enough for it. docs/erasure.md says what remains
-- elsewhere.
--
-- erase_thread removes all rows of a thread in one transaction, under its lock. A tombstone stays
-- in agui.erasure: when, by whom, why, the random uid of the thread, and a hash of its key with a
-- salt that only the owner can read, so no name can be tried against the table.
--
-- - An append that would bring the thread back gets UI014 until agui.lift_erasure. That is checked
--   only while the log of a thread is empty.
-- - A job checks the age of a thread once more under the lock, and skips threads with a run whose
--   writer is alive.
-- - A held thread (agui.hold) is refused with UI025, and a job skips it. agui.set_hold locks the
--   row of the thread as writers do. So a hold is there before an erasure looks, or waits for its
--   end.
-- - Erase, repack and the split of inputs pass the triggers by a setting of the transaction
--   (allow_log_change), which counts for the owner of the tables only.

-- role: maintainer
create or replace function agui_internal.erase_thread(thread_key uuid, reason text, older_than interval default null)
returns agui.erasure
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    first_key constant uuid := '00000000-0000-0000-0000-000000000000';
    is_known boolean;
    held     agui.hold;
    erasure  agui.erasure;
begin
    perform agui_internal.own_key(thread_key);
    -- Meanwhile nothing can be appended to the thread or saved in it, and no compaction runs.
    if older_than is null then
        perform agui_internal.wait_for_lock(agui_internal.thread_lock_id(thread_key), format('the thread with key %s', thread_key));
    else
        -- A job does not wait for other transactions.
        if not pg_try_advisory_xact_lock(agui_internal.thread_lock_id(thread_key)) then
            raise exception using
                errcode = '55P03',
                message = format('the thread with key %s is locked by %s', thread_key, agui_internal.lock_holders(agui_internal.thread_lock_id(thread_key)));
        end if;
        perform set_config('lock_timeout', '200ms', true);
    end if;
    -- A step of agui.project() that is in progress ends first: it takes this lock, and then those of its threads.
    perform from agui_internal.projection for key share;
    perform from agui.thread as thread where thread.thread_key = erase_thread.thread_key for update;
    is_known := found;
    -- A thread may have nothing yet but the claim of its first run.
    perform
    from agui_internal.claim as claim
    where claim.thread_key = erase_thread.thread_key and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp()
    limit 1;
    if found and older_than is not null or not found and not is_known then
        return null;
    end if;
    if older_than is not null
        and (agui_internal.last_activity_at(thread_key) > now() - older_than or agui_internal.has_live_run(thread_key))
    then
        return null;
    end if;
    -- A hold is set under a lock of the row, so none comes from here on.
    select * into held from agui.hold as known where known.thread_key = erase_thread.thread_key;
    if found and older_than is not null then
        return null;
    elsif found then
        raise exception using
            errcode = 'UI025',
            message = (
                select format(
                    'thread "%s"%s is held since %s by %s: %s', thread.thread_id,
                    case when thread.scope <> '' then format(' of scope "%s"', thread.scope) else '' end, held.held_at, held.held_by, held.reason
                )
                from agui.thread as thread
                where thread.thread_key = erase_thread.thread_key
            ),
            hint = 'agui.lift_hold permits it to be erased.';
    end if;

    insert into agui.erasure (erased_key, reason, thread_uid, erased_in, runs, events)
    select
        agui_internal.erasure_key(erase_thread.thread_key), erase_thread.reason,
        (
            select agui_internal.uid_of_thread(thread.thread_key, thread.thread_uid)
            from agui.thread as thread
            where thread.thread_key = erase_thread.thread_key
        ),
        pg_current_xact_id(),
        (select count(*) from agui.run as run where run.thread_key = erase_thread.thread_key),
        coalesce((
            select batch.first_seq + batch.n - 1
            from agui.batch as batch
            where batch.thread_key = erase_thread.thread_key
            order by batch.first_seq desc
            limit 1
        ), 0)
    returning * into erasure;

    perform agui_internal.delete_thread(thread_key);
    delete from agui_internal.webhook_request as request where request.thread_key = erase_thread.thread_key;
    update agui_internal.projection as state
    set (thread_key, run_no) = (select before.thread_key, before.run_no from agui_internal.run_before(state.thread_key, first_key) as before)
    where state.thread_key = erase_thread.thread_key;
    update agui_internal.projection as state
    set (scan_key, scan_no) = (select before.thread_key, before.run_no from agui_internal.run_before(state.scan_key, first_key) as before)
    where state.scan_key = erase_thread.thread_key;
    update agui.consumer as known
    set position = agui_internal.position_without_erased(known.position, case when not known.is_all then known.scope end)
    where known.position like '% ' || erase_thread.thread_key || ' %';
    update agui_internal.webhook_position as place
    set position = agui_internal.position_without_erased(place.position, known.scope)
    from agui.webhook as known
    where known.name = place.webhook and place.position like '% ' || erase_thread.thread_key || ' %';
    return erasure;
end
$$;

comment on function agui_internal.erase_thread is
    'Removes all rows of a thread and records that in agui.erasure. Returns null and removes '
    'nothing if there is no such thread. With older_than the same if something was appended or '
    'saved in it less than older_than ago, if a run of it is claimed or in progress, or if it is '
    'held. With older_than it also does not wait: 55P03 if another transaction holds the thread. '
    'UI025: it is held.';

create or replace function agui_internal.delete_thread(thread_key uuid)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from agui.projected_call as call where call.thread_key = delete_thread.thread_key;
    delete from agui.projected_interrupt as interrupt where interrupt.thread_key = delete_thread.thread_key;
    delete from agui.projected_usage as usage where usage.thread_key = delete_thread.thread_key;
    delete from agui.message_text as said where said.thread_key = delete_thread.thread_key;
    delete from agui.projected_run as projected where projected.thread_key = delete_thread.thread_key;
    delete from agui.snapshot as snapshot where snapshot.thread_key = delete_thread.thread_key;
    delete from agui.message_version as message where message.thread_key = delete_thread.thread_key;
    perform agui_internal.delete_checkpoints(thread_key);
    delete from agui.session_state as state where state.thread_key = delete_thread.thread_key;
    delete from agui.session_key as known where known.thread_key = delete_thread.thread_key;
    delete from agui_internal.consumer_thread as consumed where consumed.thread_key = delete_thread.thread_key;
    delete from agui_internal.claim as claim where claim.thread_key = delete_thread.thread_key;
    delete from agui_internal.job_note as note where note.thread_key = delete_thread.thread_key;
    delete from agui.agent_error as kept where kept.thread_key = delete_thread.thread_key;
    delete from agui.hold as held where held.thread_key = delete_thread.thread_key;
    delete from agui.thread_activity as activity where activity.thread_key = delete_thread.thread_key;
    perform agui_internal.allow_log_change(true);
    delete from agui.run_input as given where given.thread_key = delete_thread.thread_key;
    delete from agui.input_part as part where part.thread_key = delete_thread.thread_key;
    delete from agui.batch as batch where batch.thread_key = delete_thread.thread_key;
    delete from agui.run as run where run.thread_key = delete_thread.thread_key;
    delete from agui.thread as thread where thread.thread_key = delete_thread.thread_key;
    perform agui_internal.allow_log_change(false);
end
$$;

comment on function agui_internal.delete_thread is
    'Removes all rows of a thread but the requests of webhooks, and records nothing. The caller holds '
    'the lock of the thread.';

create or replace function agui_internal.inactive_threads(
    older_than interval,
    scope      text default null,
    after      uuid default null,
    max_rows   int default null
)
returns setof agui_internal.inactive_thread
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select thread.thread_key, thread.scope, thread.thread_id, activity.active_at, coalesce(latest.last_seq, 0)
    from (
        -- In order before anything is looked up, so that a page costs what it returns.
        select *
        from agui.thread
        -- An index condition: with an or, every page would begin at the first thread.
        where thread_key > coalesce(inactive_threads.after, '00000000-0000-0000-0000-000000000000')
        order by thread_key
        offset 0
    ) as thread
    cross join lateral (select agui_internal.last_activity_at(thread.thread_key) offset 0) as activity (active_at)
    left join lateral (
        select batch.first_seq + batch.n - 1 as last_seq
        from agui.batch as batch
        where batch.thread_key = thread.thread_key
        order by batch.first_seq desc
        limit 1
    ) as latest on true
    where thread.created_at < now() - older_than
        and activity.active_at < now() - older_than
        and activity.active_at >= agui_internal.earliest_time()  -- else the time is unknown
        and (inactive_threads.scope is null or thread.scope = inactive_threads.scope)
    order by thread.thread_key
    limit inactive_threads.max_rows
$$;

comment on function agui_internal.inactive_threads is
    'The threads that agui.erase_older erases: those of a scope (null: of all scopes) in which '
    'nothing was appended or saved for older_than, in the order of their keys, after the key in '
    'the argument after. max_rows belongs in the call: a limit outside would come after all of them '
    'have been found.';

create or replace function agui_internal.last_activity_at(thread_key uuid)
returns timestamptz
language sql
stable
parallel safe
return coalesce(greatest(
    (
        select batch.recorded_at
        from agui.batch as batch
        where batch.thread_key = last_activity_at.thread_key
        order by batch.first_seq desc
        limit 1
    ),
    (
        select max(known.saved_at)
        from agui.session_key as known
        where known.thread_key = last_activity_at.thread_key
    ),
    (
        select checkpoint.saved_at
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = last_activity_at.thread_key
        order by checkpoint.checkpoint_no desc
        limit 1
    )
), (
    select thread.created_at
    from agui.thread as thread
    where thread.thread_key = last_activity_at.thread_key
));

comment on function agui_internal.last_activity_at is
    'The last time when something was appended to a thread, or session state or a checkpoint was '
    'saved in it; else the time when the thread was created. Null: there is no such thread.';
