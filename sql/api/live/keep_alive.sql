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
    signal     agui.keep_alive_row;
begin
    if cardinality(thread_ids) is distinct from cardinality(run_ids) or cardinality(thread_ids) <> cardinality(scopes) then
        raise exception using
            errcode = 'UI008',
            message = 'agui.keep_alive needs arrays of one length, an item for each run';
    end if;
    if agui_internal.has_row_security() then
        perform agui_internal.own_thread_key(asked.scope, '')
        from (select distinct coalesce(named.scope, '') as scope from unnest(thread_ids, scopes) as named (thread_id, scope)) as asked;
    end if;
    perform agui_internal.note_uptime(is_writer => true);
    -- Run by run: each is found by its key, whatever the planner thinks of how many there are.
    for item in
        select
            agui.thread_key(coalesce(asked.scope, ''), asked.thread_id) as thread_key, coalesce(asked.scope, '') as scope, asked.thread_id,
            asked.run_id, asked.call_no
        from unnest(thread_ids, run_ids, scopes) with ordinality as asked (thread_id, run_id, scope, call_no)
    loop
        -- Nothing is said for a thread that another one has the key of: its runs were refused when they began.
        select asked.* into run
        from agui.run as asked
        join agui.thread as thread on thread.thread_key = asked.thread_key
        where asked.thread_key = item.thread_key
            and asked.run_id = item.run_id
            and thread.scope = item.scope
            and thread.thread_id = item.thread_id;
        if run.status = 'running' and detach then
            update agui.run as left_alone
            set seen_at = clock_timestamp(), has_heartbeat = false
            where left_alone.thread_key = run.thread_key and left_alone.run_no = run.run_no and left_alone.has_heartbeat;
        elsif run.status = 'running' and (not run.has_heartbeat or run.seen_at < due_before) then
            -- A row that is locked is being written to: by its writer, or by somebody who ends the run.
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
    'Says for the writer of runs that they are alive, and tells what it should know: a row for each of them '
    'that shall stop or has ended, none for the others. Call it every second or so for all runs that the '
    'process writes to, and after an outage before anything else: leases count only while writers can reach '
    'the server. From the first call on a run has the setting heartbeat_lease as its lease. With detach => '
    'true its writer leaves it to another one, and it has the setting lease from then on. A call writes only '
    'what is due, once in a third of heartbeat_lease. '
    'Errors: UI008 invalid arguments.';

revoke execute on function agui.keep_alive(text[], text[], boolean, text[]) from public;
