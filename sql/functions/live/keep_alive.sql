create or replace function agui.keep_alive(thread_ids text[], run_ids text[], scopes text[] default null)
returns setof agui.run_signal
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    due_before timestamptz := clock_timestamp() - agui.lease() / 3;
begin
    if cardinality(thread_ids) is distinct from cardinality(run_ids) or cardinality(thread_ids) <> cardinality(scopes) then
        raise exception using
            errcode = 'AG008',
            message = 'agui.keep_alive needs arrays of one length, an item for each run';
    end if;

    -- A row that is locked is being written to: by its writer, or by somebody who ends the run.
    update agui.run as run
    set seen_at = clock_timestamp()
    from (
        select due.thread_key, due.run_no
        from unnest(thread_ids, run_ids, scopes) as item (thread_id, run_id, scope)
        join agui.run as due
            on due.thread_key = agui.thread_key(coalesce(item.scope, ''), item.thread_id) and due.run_id = item.run_id
        where due.status = 'running' and coalesce(due.seen_at, due.started_at) < due_before
        for no key update of due skip locked
    ) as due
    where run.thread_key = due.thread_key and run.run_no = due.run_no;

    return query
    select item.call_no::int, run.status, run.stop_requested_at, run.stop_reason, run.cut_off_reason
    from unnest(thread_ids, run_ids, scopes) with ordinality as item (thread_id, run_id, scope, call_no)
    cross join lateral (
        select run.*
        from agui.run as run
        where run.thread_key = agui.thread_key(coalesce(item.scope, ''), item.thread_id) and run.run_id = item.run_id
        limit 1
    ) as run
    where run.status <> 'running' or run.stop_requested_at is not null;
end
$$;

comment on function agui.keep_alive(text[], text[], text[]) is
    'Says for the writer of runs that they are alive, and tells what it should know: a row for each of them that shall stop or has ended, none '
    'for the others. Call it every second or so for all runs that the process writes to. It writes only what is due, once in a third of the lease (agui.lease()).';

revoke execute on function agui.keep_alive(text[], text[], text[]) from public;
