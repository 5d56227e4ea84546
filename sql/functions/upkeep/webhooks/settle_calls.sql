create or replace function agui_internal.settle_calls()
returns int
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Of a step, which is a transaction.
    most_time constant interval := '200 ms';
    began_at  constant timestamptz := clock_timestamp();
    oldest    constant timestamptz := began_at - interval '30 days';
    due       constant timestamptz := began_at - agui_internal.setting_value('call_delay') * interval '1 second';
    key       uuid;
    head      agui.run;
    done_n    int := 0;
begin
    perform agui_internal.refuse_unless_operator('compute facts');
    while clock_timestamp() < began_at + most_time loop
        select asked.thread_key into key
        from agui.projected_interrupt as asked
        where asked.is_call and asked.is_open is null and asked.asked_at <= due
        order by asked.asked_at
        limit 1;
        exit when not found;
        perform from agui.thread as thread where thread.thread_key = key for key share skip locked;
        exit when not found;  -- it is being erased
        perform agui_internal.settle_calls_of(key, due);
        done_n := done_n + 1;

        select run.* into head
        from agui.run as run
        where run.thread_key = key
        order by run.run_no desc
        limit 1;
        continue when head.status = 'running' or agui_internal.node_of(key) is distinct from agui_internal.this_node();
        insert into agui_internal.webhook_request (webhook, event_id, thread_key, kind, ended_at, body, next_at)
        select
            known.name, agui_internal.webhook_event_id(key, run.run_no, run.started_at, run.end_seq, 'run.waiting'), key, 'run.waiting', happened.at,
            agui_internal.webhook_body(run, 'run.waiting', happened.at), clock_timestamp()
        from (
            select distinct case when head.status in ('failed', 'cut_off') then head.run_no else asked.run_no end as run_no
            from agui.projected_interrupt as asked
            where asked.thread_key = key and asked.is_open and asked.is_call
        ) as asking
        join agui.run as run on run.thread_key = key and run.run_no = asking.run_no
        cross join lateral agui_internal.end_of_run(run) as ending
        cross join lateral (select coalesce(ending.at, run.ended_at) as at offset 0) as happened
        join agui.thread as thread on thread.thread_key = key
        join agui.webhook as known on known.scope is null or known.scope = thread.scope
        join agui_internal.webhook_position as place on place.webhook = known.name
        where 'run.waiting' = any (known.kinds) and happened.at >= place.calls_since and happened.at >= oldest
        on conflict on constraint webhook_request_pkey do nothing;
    end loop;
    return done_n;
end
$$;

comment on function agui_internal.settle_calls() is
    'Notes which tool calls without a result wait, once the setting call_delay has passed since their run ended, and again '
    'when a later run has: of the next threads, for some 200 ms. Adds the requests of webhooks for them, one for each run that '
    'asks, and one for a run that failed while they waited. Returns of how many threads; 0: there are none.';

revoke execute on function agui_internal.settle_calls() from public;
