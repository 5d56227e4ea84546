-- Requests of webhooks: which ends of runs get one, and what came of them.
--
--    agui.changes ─► add_webhook_requests ─► agui_internal.webhook_request ─► claim ─► HTTP ─► note
--    from the        requests and position,  one row an end                   without a transaction
--    position on     in one transaction
--
-- - Nothing is lost and nothing is added twice, because requests and position are one transaction.
--   All scopes are read even for a webhook of one scope: a position that stays behind would make
--   each read longer.
-- - An end is run.end_seq. It names the request: event_id is a hash of the run, the end and the
--   kind. So events after the end add nothing, a run that ends once more adds a request, and a read
--   of all runs in another history of transactions finds the requests that exist.
-- - A row stays for 30 days, and an older end gets none, so rows can be deleted without being made
--   again. The body is stored, because the run may change before the last attempt, and removed once
--   it is sent.
-- - A request is claimed with skip locked and a lease of a minute (next_at). If the process dies,
--   another one sends it. Eight are on their way to an endpoint at once; one that gives no answer
--   rests for 30 seconds.
-- - internal/webhook signs a request, and checks the address in the dialer, after the name is
--   resolved.
-- - A copy of a database must not send. So an endpoint belongs to a database (sends_from: system
--   identifier and oid), and workers of another one get nothing until agui.take_over_webhooks. The
--   timeline is no part of it, so that a promoted standby continues without an operator. The price:
--   a physical copy cannot be told from a promoted standby.
-- - After an upgrade of rules, a run that is corrected gets a row that says so instead of a
--   request.

-- role: worker
create or replace function agui_internal.add_webhook_requests(
    webhook text, after text, moved_to text, scopes text[], thread_ids text[], run_ids text[]
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read them whole.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    oldest constant timestamptz := clock_timestamp() - interval '30 days';
begin
    perform agui_internal.refuse_unless_operator('send webhooks');
    update agui_internal.webhook_position as place
    set position = agui_internal.position_without_erased(moved_to, known.scope), read_at = clock_timestamp()
    from agui.webhook as known
    where known.name = place.webhook and place.webhook = add_webhook_requests.webhook and place.position = add_webhook_requests.after;
    if not found then
        return false;
    end if;
    delete from agui_internal.webhook_request as request where request.ended_at < oldest;
    -- agui.erase waits, or is waited for.
    perform
    from agui.thread as thread
    where thread.thread_key in (select agui.thread_key(changed.scope, changed.thread_id) from unnest(scopes, thread_ids) as changed (scope, thread_id))
    order by thread.thread_key
    for key share;

    insert into agui_internal.webhook_request (webhook, event_id, thread_key, kind, ended_at, body, next_at)
    select
        known.name,
        agui_internal.webhook_event_id(run.thread_key, run.run_no, run.started_at, run.end_seq, happened.kind),
        run.thread_key, happened.kind, happened.at,
        agui_internal.webhook_body(run, happened.kind, happened.at),
        clock_timestamp()
    from unnest(scopes, thread_ids, run_ids) as changed (scope, thread_id, run_id)
    join agui.webhook as known
        on known.name = add_webhook_requests.webhook
    join agui.run as run
        on run.thread_key = agui.thread_key(changed.scope, changed.thread_id) and run.run_id = changed.run_id
    join agui.thread as thread
        on thread.thread_key = run.thread_key and thread.scope = changed.scope and thread.thread_id = changed.thread_id
    cross join lateral agui_internal.end_of_run(run) as ending
    cross join lateral (
        select agui_internal.webhook_kind(run.status) as kind, coalesce(ending.at, run.ended_at) as at
        union all
        -- What it was to answer waits as before.
        select 'run.waiting', coalesce(ending.at, run.ended_at)
        where run.status in ('failed', 'cut_off')
            and exists (select from agui_internal.open_interrupts(run) as asked where (asked.expires_at <= clock_timestamp()) is not true)
    ) as happened
    where happened.kind = any (known.kinds)
        and happened.at >= known.created_at
        and happened.at >= oldest
        -- Of a thread that is moved away, the other node sends what is new.
        and (agui_internal.this_node() is null or agui_internal.node_of(run.thread_key) = agui_internal.this_node())
    on conflict on constraint webhook_request_pkey do nothing;
    return true;
end
$$;

comment on function agui_internal.add_webhook_requests is
    'Adds the requests of a webhook for runs that agui.changes returned behind the position in after, '
    'as the runs are now, and moves its position. An end that has its request already gets none, '
    'whatever came after it. Returns false, and does nothing, if the position is not the one in '
    'after: another worker has moved it, or the webhook was removed.';

create or replace function agui_internal.webhook_kind(status text)
returns text
language sql
immutable
parallel safe
return case status
    when 'finished' then 'run.finished'
    when 'cancelled' then 'run.cancelled'
    when 'interrupted' then 'run.waiting'
    when 'failed' then 'run.failed'
    when 'cut_off' then 'run.failed'
end;

comment on function agui_internal.webhook_kind is
    'The kind (agui.webhook.kinds) of what a run with this status reports; null: it is in progress.';

-- role: worker
create or replace function agui_internal.claim_webhook_requests(webhook text, at timestamptz, until timestamptz, max_rows int)
returns setof agui_internal.claimed_request
language plpgsql
volatile
security definer
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('send webhooks');
    return query
    update agui_internal.webhook_request as claimed
    set attempts = claimed.attempts + 1, next_at = until, noted_at = clock_timestamp()
    from (
        select request.webhook, request.event_id
        from agui_internal.webhook_request as request
        join agui.webhook as known
            on known.name = request.webhook and known.enabled and known.sends_from = agui_internal.database_identity()
        where request.webhook = claim_webhook_requests.webhook and request.next_at <= at
        order by request.next_at
        limit max_rows
        for update of request skip locked
    ) as due
    where claimed.webhook = due.webhook and claimed.event_id = due.event_id
    returning claimed.event_id, claimed.kind, claimed.body, claimed.attempts;
end
$$;

comment on function agui_internal.claim_webhook_requests is
    'Takes requests of a webhook that are due at a time, the longest due first, so that no other '
    'worker sends them until another time. None if another database sends them.';

-- role: worker
create or replace function agui_internal.note_webhook_request(
    webhook text, event_id text, attempts int, is_sent boolean, next_at timestamptz, outcome text, is_gone boolean
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('send webhooks');
    update agui_internal.webhook_request as request
    set body = case when not is_sent then request.body end,
        next_at = case when not is_sent then note_webhook_request.next_at end,
        outcome = note_webhook_request.outcome,
        noted_at = clock_timestamp()
    where request.webhook = note_webhook_request.webhook and request.event_id = note_webhook_request.event_id
        -- A failure counts only if no other call has begun it meanwhile.
        and (is_sent or request.attempts = note_webhook_request.attempts and request.next_at is not null);
    if is_gone then
        update agui.webhook as known
        set enabled = false, disabled_because = 'the endpoint answered ' || note_webhook_request.outcome
        where known.name = note_webhook_request.webhook and known.enabled;
    end if;
end
$$;

comment on function agui_internal.note_webhook_request is
    'Notes what came of an attempt: the request was sent, or is due once more at next_at, or (null) '
    'has failed for good. is_gone: the endpoint wants no more requests, so the webhook is disabled. '
    'attempts: as claimed.';

create or replace function agui_internal.random_webhook_secret()
returns text
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    -- 244 random bits.
    select 'whsec_' || encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64')
$$;

comment on function agui_internal.random_webhook_secret is 'A new secret for the signatures of a webhook.';

-- role: worker
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

comment on function agui_internal.settle_calls is
    'Notes which tool calls without a result wait, once the setting call_delay has passed since their run ended, and again '
    'when a later run has: of the next threads, for some 200 ms. Adds the requests of webhooks for them, one for each run that '
    'asks, and one for a run that failed while they waited. Returns of how many threads; 0: there are none.';

create or replace function agui_internal.webhook_event_id(thread_key uuid, run_no int, started_at timestamptz, end_seq bigint, kind text)
returns text
language sql
stable
parallel safe
return 'evt_' || left(encode(sha256(convert_to(
    concat_ws('/', thread_key, run_no, extract(epoch from started_at), end_seq, kind), 'UTF8'
)), 'hex'), 32);

comment on function agui_internal.webhook_event_id is
    'The id of the requests about the end of a run (agui_internal.webhook_request).';

create or replace function agui_internal.webhook_body(run agui.run, kind text, at timestamptz)
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
-- So that times are written in UTC.
set timezone = 'UTC'
as $$
begin
    return (
        select json_strip_nulls(json_build_object('type', kind, 'timestamp', at, 'data', json_build_object(
            'scope', thread.scope, 'threadId', thread.thread_id, 'runId', run.run_id, 'parentRunId', parent.run_id, 'status', run.status,
            'error', case
                when kind = 'run.failed' then json_build_object('code', why.error_code, 'message', coalesce(why.error_message, ''))
            end,
            'interrupts', case
                when kind = 'run.waiting' and run.status <> 'finished' then (
                    select coalesce(json_agg(json_build_object(
                        'id', left(asked.interrupt_id, 1000), 'reason', left(asked.reason, 1000), 'toolCallId', left(asked.tool_call_id, 1000),
                        'expiresAt', asked.expires_at
                    ) order by asked.place), '[]')
                    from agui_internal.open_interrupts(run) as asked
                    where asked.place <= 100
                )
            end,
            'calls', case
                when kind = 'run.waiting' then (
                    select json_agg(json_build_object('toolCallId', left(asked.tool_call_id, 1000), 'tool', left(agui_internal.tool_of_call(asked), 1000)) order by asked.run_no, asked.place)
                    from agui.projected_interrupt as asked
                    where asked.thread_key = run.thread_key and asked.is_open and asked.is_call
                        -- A run that failed leaves those open that were open before it.
                        and (asked.run_no = run.run_no or run.status <> 'finished')
                        and asked.place <= 100
                )
            end,
            'firstSeq', run.first_seq, 'lastSeq', run.last_seq, 'startedAt', run.started_at, 'endedAt', run.ended_at
        )))
        from agui.thread as thread
        left join agui.run as parent on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        cross join lateral agui_internal.why_ended(run, 1000) as why
        where thread.thread_key = run.thread_key
    );
end
$$;

comment on function agui_internal.webhook_body is
    'The body of the request of a webhook about a run, as it is now. kind as in agui.webhook.kinds; at: when it happened.';

-- URLs and secrets are for operators.
-- role: worker, maintainer
create or replace function agui_internal.webhook_endpoints(at timestamptz)
returns setof agui_internal.webhook_endpoint
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('send webhooks');
    return query
    select
        known.name, known.url, known.secret, known.scope, known.kinds, known.enabled, known.created_at, place.position,
        exists (select from agui_internal.webhook_request as request where request.webhook = known.name and request.next_at <= webhook_endpoints.at),
        case when known.old_secret_until > webhook_endpoints.at then known.old_secret end,
        known.sends_from is distinct from agui_internal.database_identity()
    from agui.webhook as known
    join agui_internal.webhook_position as place on place.webhook = known.name
    order by known.name;
end
$$;

comment on function agui_internal.webhook_endpoints is
    'The webhooks with their secrets, and whether they have requests to send at a time.';

-- role: reader, monitor
create or replace function agui_internal.webhook_states()
returns setof agui_internal.webhook_state
language plpgsql
stable
security definer
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    own record;
begin
    select * into own from agui_internal.monitored_keys();
    if own.low = '00000000-0000-0000-0000-000000000000' and own.high = 'ffffffff-ffff-ffff-ffff-ffffffffffff' then
        return query
        select
            known.name, known.enabled, known.disabled_because, waiting.to_send, waiting.retrying, given_up.failed,
            known.sends_from is distinct from agui_internal.database_identity()
        from agui.webhook as known
        cross join lateral (
            select count(*) as to_send, count(request.outcome) as retrying
            from agui_internal.webhook_request as request
            where request.webhook = known.name and request.next_at is not null
        ) as waiting
        cross join lateral (
            select count(*) as failed
            from agui_internal.webhook_request as request
            where request.webhook = known.name and request.body is not null and request.outcome is not null and request.next_at is null
        ) as given_up
        order by known.name;
    end if;
end
$$;

comment on function agui_internal.webhook_states is
    'Returns how the webhooks do, without URLs and secrets, to a role that sees all scopes, or is a '
    'member of pg_monitor; to others none.';
