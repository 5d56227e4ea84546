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

comment on function agui_internal.erase_thread(uuid, text, interval) is
    'Removes all rows of a thread and records that in agui.erasure. Returns null and removes '
    'nothing if there is no such thread. With older_than the same if something was appended or '
    'saved in it less than older_than ago, if a run of it is claimed or in progress, or if it is '
    'held. With older_than it also does not wait: 55P03 if another transaction holds the thread. '
    'UI025: it is held.';

revoke execute on function agui_internal.erase_thread(uuid, text, interval) from public;
