-- role: maintainer; route: each node
create or replace function agui.add_webhook(
    name text, url text, kinds text[] default null, secret text default null, scope text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    all_kinds constant text[] := array['run.finished', 'run.failed', 'run.cancelled', 'run.waiting'];
    key       constant text := coalesce(add_webhook.secret, agui_internal.random_webhook_secret());
    problem   text;
begin
    perform agui_internal.refuse_unless_operator('add a webhook');
    begin
        insert into agui.webhook (name, url, scope, kinds, secret, sends_from)
        values (
            add_webhook.name, add_webhook.url, add_webhook.scope, coalesce(add_webhook.kinds, all_kinds), key, agui_internal.database_identity()
        );
    exception
        when unique_violation then
            raise exception using
                errcode = '22023',
                message = format('there is a webhook "%s" already', add_webhook.name),
                hint = 'agui.remove_webhook removes it.';
        when not_null_violation or check_violation or invalid_parameter_value then
            get stacked diagnostics problem = constraint_name;
            raise exception using
                errcode = '22023',
                message = format('webhook "%s": %s', left(add_webhook.name, 100), case problem
                    when 'webhook_name_is_short' then 'its name must be 1 to 63 letters, digits, "_", "-" and "."'
                    when 'webhook_url_is_http' then 'its URL must begin with https:// or http://'
                    when 'webhook_kinds_are_known' then 'its kinds must be some of ' || array_to_string(all_kinds, ', ')
                    when 'webhook_secret_has_the_form' then 'its secret must be whsec_ and 24 to 64 bytes in base64'
                    else 'name and URL must be given, and the secret must be whsec_ and 24 to 64 bytes in base64'
                end);
    end;
    -- Behind every transaction that has ended.
    insert into agui_internal.webhook_position (webhook, position)
    values (add_webhook.name, format(
        '%s changed %s ffffffff-ffff-ffff-ffff-ffffffffffff 2147483647',
        agui_internal.epoch(), pg_snapshot_xmin(pg_current_snapshot())::text::numeric - 1
    ));
    return key;
end
$$;

comment on function agui.add_webhook is
    'Adds a webhook: from now on the worker sends an HTTP POST to the URL when a run of a scope (null: '
    'of any scope) has ended or waits. kinds are some of run.finished, run.failed, run.cancelled and '
    'run.waiting (null: all). Returns the secret of the signatures, which no other function shows; '
    'null makes a random one. Requires agui_maintainer. '
    'Errors: 22023 name, URL, kinds or secret are not valid, or there is a webhook of this name.';

-- role: maintainer; route: each node
create or replace function agui.drop_webhook_failures(webhook text, event_id text default null)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    dropped bigint;
begin
    perform agui_internal.refuse_unless_operator('drop the failures of a webhook');
    -- The row stays, so that the end is not sent once more.
    update agui_internal.webhook_request as request
    set body = null, next_at = null
    where request.webhook = drop_webhook_failures.webhook
        and (drop_webhook_failures.event_id is null or request.event_id = drop_webhook_failures.event_id)
        and request.body is not null and request.outcome is not null;
    get diagnostics dropped = row_count;
    return dropped;
end
$$;

comment on function agui.drop_webhook_failures is
    'Removes requests from agui.webhook_failures(): one, or (null) all of the webhook. They are not '
    'sent any more. Returns how many. Requires agui_maintainer.';

-- role: maintainer; route: each node
create or replace function agui.enable_webhook(name text, enabled boolean default true)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('enable or disable a webhook');
    update agui.webhook as known
    set enabled = enable_webhook.enabled, disabled_because = null
    where known.name = enable_webhook.name;
    return found;
end
$$;

comment on function agui.enable_webhook is
    'Enables a webhook, or disables it. What happens while it is disabled is sent once it is enabled, '
    'unless it is older than 30 days. Returns false if there is no such webhook. Requires '
    'agui_maintainer.';

-- role: maintainer; route: each node
create or replace function agui.remove_webhook(name text)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('remove a webhook');
    delete from agui.webhook as known where known.name = remove_webhook.name;
    return found;
end
$$;

comment on function agui.remove_webhook is
    'Removes a webhook, with its requests that wait or have failed. Returns false if there is no such '
    'webhook. Requires agui_maintainer.';

-- role: maintainer; route: each node
create or replace function agui.retry_webhook_failures(webhook text, event_id text default null)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    retried bigint;
begin
    perform agui_internal.refuse_unless_operator('retry a webhook');
    update agui_internal.webhook_request as request
    set attempts = 0, next_at = clock_timestamp(), outcome = null
    where request.webhook = retry_webhook_failures.webhook
        and (retry_webhook_failures.event_id is null or request.event_id = retry_webhook_failures.event_id)
        and request.body is not null and request.outcome is not null;
    get diagnostics retried = row_count;
    return retried;
end
$$;

comment on function agui.retry_webhook_failures is
    'Makes requests of agui.webhook_failures() due at once, with as many attempts as at first: one, or '
    '(null) all of the webhook. Returns how many. Requires agui_maintainer.';

-- role: maintainer; route: each node
create or replace function agui.rotate_webhook_secret(name text, secret text default null, keep_old interval default '1 day')
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant text := coalesce(rotate_webhook_secret.secret, agui_internal.random_webhook_secret());
begin
    perform agui_internal.refuse_unless_operator('rotate the secret of a webhook');
    if keep_old is null or keep_old < interval '0' then
        raise exception using
            errcode = '22023',
            message = 'rotate_webhook_secret: keep_old must be an interval of 0 or more';
    end if;
    begin
        update agui.webhook as known
        set secret = key, old_secret = known.secret, old_secret_until = clock_timestamp() + keep_old
        where known.name = rotate_webhook_secret.name;
    exception
        when check_violation or invalid_parameter_value then
            raise exception using
                errcode = '22023',
                message = format('webhook "%s": its secret must be whsec_ and 24 to 64 bytes in base64', left(rotate_webhook_secret.name, 100));
    end;
    return case when found then key end;
end
$$;

comment on function agui.rotate_webhook_secret is
    'Gives a webhook another secret (null: a random one), and returns it. For the time of keep_old each '
    'request has two signatures, one of the old secret too, so that endpoints can be changed '
    'meanwhile. Returns null if there is no such webhook. Requires agui_maintainer. '
    'Errors: 22023 the secret or keep_old is not valid.';

-- role: maintainer; route: each node
create or replace function agui.take_over_webhooks(name text default null)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    here constant text := agui_internal.database_identity();
    taken bigint;
begin
    perform agui_internal.refuse_unless_operator('take over webhooks');
    update agui.webhook as known
    set sends_from = here
    where (take_over_webhooks.name is null or known.name = take_over_webhooks.name) and known.sends_from is distinct from here;
    get diagnostics taken = row_count;
    return taken;
end
$$;

comment on function agui.take_over_webhooks is
    'Makes this database the one that sends the requests of a webhook, or (null) of all. After a dump '
    'was restored into another database, that one sends nothing before this call, because the one '
    'that the dump comes from may do so. Call it only if that one is gone. Returns the number of '
    'webhooks that it did not send before. Requires agui_maintainer.';

-- URLs are for operators.
-- role: maintainer; route: each node
create or replace function agui.webhook_failures(webhook text default null, max_rows int default 1000)
returns setof agui.webhook_failure
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('list the failures of webhooks');
    return query
    select
        request.webhook, request.event_id, request.kind, thread.scope, thread.thread_id, request.body -> 'data' ->> 'runId',
        request.ended_at, request.attempts, request.outcome, request.noted_at, request.next_at, request.body
    from agui_internal.webhook_request as request
    join agui.thread as thread on thread.thread_key = request.thread_key
    where request.body is not null and request.outcome is not null
        and (webhook_failures.webhook is null or request.webhook = webhook_failures.webhook)
    order by request.webhook, request.ended_at, request.event_id
    limit greatest(max_rows, 0);
end
$$;

comment on function agui.webhook_failures is
    'Returns the requests that failed, of a webhook or (null) of all, those of the oldest ends first; '
    'max_rows null: all. next_attempt_at is null if no attempt follows. agui.retry_webhook_failures '
    'sends them at once, agui.drop_webhook_failures removes them; 30 days after the end of the run '
    'they are removed anyway. Requires agui_maintainer.';

-- URLs are for operators.
-- role: maintainer; route: each node
create or replace function agui.webhooks()
returns setof agui.webhook_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('list webhooks');
    return query
    select
        known.name, known.url, known.scope, known.kinds, known.enabled, known.disabled_because, known.created_at, known.created_by,
        state.to_send, state.failed, state.retrying,
        case when known.old_secret_until > clock_timestamp() then known.old_secret_until end,
        state.is_elsewhere
    from agui.webhook as known
    join agui_internal.webhook_states() as state using (name)
    order by known.name;
end
$$;

comment on function agui.webhooks is
    'Returns the webhooks in the order of their names, without their secrets. Requires agui_maintainer.';
