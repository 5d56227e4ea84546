create or replace function agui.changes(after text default null, max_rows int default 1000, scope text default null)
returns setof agui.changed_run
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    first_key constant uuid := '00000000-0000-0000-0000-000000000000';
    epoch     constant text := agui_internal.epoch();
    -- Of a position: the epoch, whether it is in the first reading of all runs, a transaction, a run.
    part      constant text[] := regexp_match(changes.after, '^(\d+/\d+) (all|changed) (\d{1,20}) ([0-9a-f-]{36}) (\d{1,10})$');
    since     xid8 := coalesce(part[3]::xid8, pg_snapshot_xmin(pg_current_snapshot()));
    place_key uuid := coalesce(part[4]::uuid, first_key);
    place_no  int := coalesce(part[5]::int, 0);
    rest      int := max_rows;
    own       record;
begin
    if changes.after is not null and part is null then
        raise exception using
            errcode = '22023',
            message = format('changes: "%s" is not a position', left(changes.after, 100)),
            hint = 'Use the position of a row of agui.changes; null begins with all runs.';
    end if;
    if max_rows is null or max_rows not between 1 and 10000 then
        raise exception using
            errcode = 'UI011',
            message = format('changes: max_rows must be between 1 and 10000, not %s', coalesce(max_rows::text, 'null')),
            hint = 'To read the next page, pass the position of the last row of this one.';
    end if;
    -- What was read is below the horizon, which only rises, unless the server lost what a reader saw:
    -- in a crash without synchronous_commit. A standby may be behind.
    if part[1] <> epoch
        or not pg_is_in_recovery() and since >= pg_snapshot_xmin(pg_current_snapshot()) and part[2] = 'changed'
        or since > pg_snapshot_xmax(pg_current_snapshot()) and not pg_is_in_recovery()
    then
        raise exception using
            errcode = 'UI024',
            message = 'changes: the position is of another history of transactions: the database was restored, or failed over to a standby',
            hint = 'Begin with after => null, which returns all runs. What you had may have changed or be gone.';
    end if;
    select * into own from agui_internal.own_keys();
    if scope is not null then
        own.low := greatest(own.low, agui_internal.first_key(changes.scope));
        own.high := least(own.high, agui_internal.last_key(changes.scope));
    end if;

    if part[2] is distinct from 'changed' then
        return query
        select
            format('%s all %s %s %s', epoch, since, run.thread_key, run.run_no),
            thread.scope, thread.thread_id, run.run_id, parent.run_id, run.status, run.first_seq, run.last_seq, run.started_at, run.ended_at
        from (
            select *
            from agui.run as every_run
            where (every_run.thread_key, every_run.run_no) > (place_key, place_no)
                and every_run.thread_key >= own.low and every_run.thread_key <= own.high
            order by every_run.thread_key, every_run.run_no
            limit rest
        ) as run
        join agui.thread as thread on thread.thread_key = run.thread_key
        left join agui.run as parent on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        order by run.thread_key, run.run_no;
        get diagnostics place_no = row_count;
        rest := rest - place_no;
        place_key := first_key;
        place_no := 0;
    end if;
    if rest > 0 then
        return query
        select
            format('%s changed %s %s %s', epoch, changed.changed_in, run.thread_key, run.run_no),
            thread.scope, thread.thread_id, run.run_id, parent.run_id, run.status, run.first_seq, run.last_seq, run.started_at, run.ended_at
        from agui_internal.changed_after(since, place_key, place_no, rest, own.low, own.high) as changed
        join agui.run as run on run.thread_key = changed.thread_key and run.run_no = changed.run_no
        join agui.thread as thread on thread.thread_key = run.thread_key
        left join agui.run as parent on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        order by changed.changed_in, changed.thread_key, changed.run_no;
    end if;
end
$$;

comment on function agui.changes(text, int, text) is
    'Returns the runs of all conversations that began, ended or took events after their end, behind a '
    'position (null: all runs first, then those that change), each at least once. The order is that '
    'of the transactions that changed them last, and a run whose transaction is in progress, or '
    'began after one that is, comes later. So nothing is missed, and a reader that keeps the position '
    'of its last row can stop at any time. A run may come again without a change. No row: nothing has '
    'changed. scope: only of a scope (null: all that the role sees). Works on a standby. '
    'Erased threads do not come: their rows are gone, and their names are not kept. '
    'Errors: 22023 not a position, UI011 max_rows is not from 1 to 10000, UI024 the position is of '
    'another history of transactions, so begin again.';

revoke execute on function agui.changes(text, int, text) from public;
