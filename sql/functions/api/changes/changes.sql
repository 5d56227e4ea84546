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
    place agui_internal.change_place := agui_internal.place_of_position(changes.after);
    rest  int := max_rows;
    n     int;
    own   record;
begin
    if max_rows is null or max_rows not between 1 and 10000 then
        raise exception using
            errcode = 'UI011',
            message = format('changes: max_rows must be between 1 and 10000, not %s', coalesce(max_rows::text, 'null')),
            hint = 'To read the next page, pass the position of the last row of this one.';
    end if;
    select * into own from agui_internal.own_keys_in(changes.scope);

    if place.is_in_first_reading then
        return query
        select
            format('%s all %s %s %s', place.epoch, place.changed_in, run.thread_key, run.run_no),
            thread.scope, thread.thread_id, run.run_id, parent.run_id, run.status, run.first_seq, run.last_seq, run.started_at, run.ended_at,
            agui_internal.uid_of_thread(thread.thread_key, thread.thread_uid), false
        from (
            select *
            from agui.run as every_run
            where (every_run.thread_key, every_run.run_no) > (place.thread_key, place.run_no)
                and every_run.thread_key >= own.low and every_run.thread_key <= own.high
            order by every_run.thread_key, every_run.run_no
            limit rest
        ) as run
        join agui.thread as thread on thread.thread_key = run.thread_key
        left join agui.run as parent on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        order by run.thread_key, run.run_no;
        get diagnostics n = row_count;
        rest := rest - n;
        place.thread_key := '00000000-0000-0000-0000-000000000000';
        place.run_no := 0;
    end if;
    if rest > 0 then
        return query
        select
            format('%s changed %s %s %s', place.epoch, changed.changed_in, changed.thread_key, changed.run_no),
            thread.scope, thread.thread_id, run.run_id, parent.run_id, run.status, run.first_seq, run.last_seq, run.started_at, run.ended_at,
            case when run.run_no is null then changed.thread_key else agui_internal.uid_of_thread(thread.thread_key, thread.thread_uid) end, run.run_no is null
        from (
            select * from agui_internal.changed_after(place.changed_in, place.thread_key, place.run_no, rest, own.low, own.high)
            union all
            select * from agui_internal.erased_after(place.changed_in, place.thread_key, place.run_no, rest, own.low, own.high)
            order by changed_in, thread_key, run_no
            limit rest
        ) as changed
        left join agui.run as run on run.thread_key = changed.thread_key and run.run_no = changed.run_no
        left join agui.thread as thread on thread.thread_key = run.thread_key
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
    'So do the threads that are erased afterwards: is_erased is true, and thread_uid is that of their '
    'runs, for their names are not kept. '
    'Errors: 22023 not a position, UI011 max_rows is not from 1 to 10000, UI024 the position is of '
    'another history of transactions, so begin again.';

revoke execute on function agui.changes(text, int, text) from public;
