create or replace function agui_internal.last_seen_at(run agui.run)
returns timestamptz
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select greatest(run.seen_at, (
        select batch.recorded_at
        from agui.batch as batch
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and coalesce(run.last_seq, 9223372036854775807)
        order by batch.first_seq desc
        limit 1
    ))
$$;

comment on function agui_internal.last_seen_at(agui.run) is
    'The last sign of life of the writer of a run: a batch or a call of agui.keep_alive.';

revoke execute on function agui_internal.last_seen_at(agui.run) from public;
