create or replace function agui.keep_alive(
    thread_ids text[],
    run_ids    text[],
    detach     boolean default false,
    scopes     text[] default null
)
returns setof agui.keep_alive_row
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    due_before timestamptz := clock_timestamp() - agui_internal.heartbeat_lease() / 3;
    item       record;
    run        agui.run;
    claim      agui_internal.claim;
    signal     agui.keep_alive_row;
begin
    if cardinality(thread_ids) is distinct from cardinality(run_ids) or cardinality(thread_ids) <> cardinality(scopes) then
        raise exception using
            errcode = 'UI008',
            message = 'agui.keep_alive: all arrays must have one item for each run';
    end if;
    if agui_internal.has_row_security() then
        perform agui_internal.own_thread_key(requested.scope, '')
        from (select distinct coalesce(named.scope, '') as scope from unnest(thread_ids, scopes) as named (thread_id, scope)) as requested;
    end if;
    if agui_internal.this_node() is not null then
        perform agui_internal.refuse_moved(json_agg(agui_internal.place_of_thread(
            agui.thread_key(coalesce(named.scope, ''), named.thread_id), coalesce(named.scope, ''), named.thread_id
        )))
        from unnest(thread_ids, scopes) as named (thread_id, scope)
        where agui_internal.fenced_node_of(agui.thread_key(coalesce(named.scope, ''), named.thread_id)) <> agui_internal.this_node();
    end if;
    perform agui_internal.note_uptime(is_writer => true);
    -- One run at a time: each is found by its key, whatever row count the planner expects.
    for item in
        select
            agui.thread_key(coalesce(requested.scope, ''), requested.thread_id) as thread_key, coalesce(requested.scope, '') as scope, requested.thread_id,
            requested.run_id, requested.call_no
        from unnest(thread_ids, run_ids, scopes) with ordinality as requested (thread_id, run_id, scope, call_no)
    loop
        -- Another thread may have the key. Its runs are not reported: they were refused when they
        -- began.
        select requested.* into run
        from agui.run as requested
        join agui.thread as thread on thread.thread_key = requested.thread_key
        where requested.thread_key = item.thread_key
            and requested.run_id = item.run_id
            and thread.scope = item.scope
            and thread.thread_id = item.thread_id;
        if not found then
            -- The beginning of the run may not be committed yet: then the lease begins with it.
            select held.* into claim
            from agui_internal.claim as held
            where held.thread_key = item.thread_key and held.run_id = item.run_id;
            continue when not found;
            if not detach and claim.seen_at < due_before then
                -- An expired claim stays expired: another run may have begun since. A locked row is
                -- being deleted by the beginning of the run, or changed by a stop request.
                update agui_internal.claim as due
                set seen_at = clock_timestamp()
                from (
                    select held.thread_key, held.run_id
                    from agui_internal.claim as held
                    where held.thread_key = item.thread_key
                        and held.run_id = item.run_id
                        and agui_internal.claim_alive_until(held.seen_at) > clock_timestamp()
                    for no key update skip locked
                ) as alive
                where due.thread_key = alive.thread_key and due.run_id = alive.run_id;
            end if;
            if claim.stop_requested_at is not null then
                signal := row(item.call_no, 'claimed', claim.stop_requested_at, claim.stop_reason, null);
                return next signal;
            end if;
            continue;
        end if;
        if run.status = 'running' and detach then
            update agui.run as left_alone
            set seen_at = clock_timestamp(), has_heartbeat = false
            where left_alone.thread_key = run.thread_key and left_alone.run_no = run.run_no and left_alone.has_heartbeat;
        elsif run.status = 'running' and (not run.has_heartbeat or run.seen_at < due_before) then
            -- A locked row is being written by the writer of the run, or by a transaction that ends
            -- the run.
            perform from agui.run as due where due.thread_key = run.thread_key and due.run_no = run.run_no for no key update skip locked;
            if found then
                update agui.run as due
                set seen_at = clock_timestamp(), has_heartbeat = true
                where due.thread_key = run.thread_key and due.run_no = run.run_no;
            end if;
        end if;
        if run.status <> 'running' or run.stop_requested_at is not null then
            signal := row(item.call_no, run.status, run.stop_requested_at, run.stop_reason, run.cut_off_reason);
            return next signal;
        end if;
    end loop;
end
$$;

comment on function agui.keep_alive(text[], text[], boolean, text[]) is
    'Sends heartbeats for the runs that a process writes to. Returns a row for each run that '
    'should stop or has ended, and none for the others. Call it about once a second for all runs '
    'of the process, and first of all after an outage: leases count only while writers can reach '
    'the server. From the first call on, the lease of a run is the setting heartbeat_lease. detach '
    '=> true hands the run over to another writer, and its lease becomes the setting lease. A run '
    'that is claimed and has not begun (agui.claim_run) is passed in the same arrays: the call '
    'renews its claim, and returns a row with the status claimed if the run should stop. A call '
    'writes only if an update is due: once in a third of heartbeat_lease. '
    'Errors: UI008 invalid arguments, UI027 another node of the cluster has threads of the call, and '
    'no run of it was kept alive.';

revoke execute on function agui.keep_alive(text[], text[], boolean, text[]) from public;
