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

comment on function agui_internal.add_webhook_requests(text, text, text, text[], text[], text[]) is
    'Adds the requests of a webhook for runs that agui.changes returned behind the position in after, '
    'as the runs are now, and moves its position. An end that has its request already gets none, '
    'whatever came after it. Returns false, and does nothing, if the position is not the one in '
    'after: another worker has moved it, or the webhook was removed.';

revoke execute on function agui_internal.add_webhook_requests(text, text, text, text[], text[], text[]) from public;
