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

comment on function agui.add_webhook(text, text, text[], text, text) is
    'Adds a webhook: from now on the worker sends an HTTP POST to the URL when a run of a scope (null: '
    'of any scope) has ended or waits. kinds are some of run.finished, run.failed, run.cancelled and '
    'run.waiting (null: all). Returns the secret of the signatures, which no other function shows; '
    'null makes a random one. Requires agui_maintainer. '
    'Errors: 22023 name, URL, kinds or secret are not valid, or there is a webhook of this name.';

revoke execute on function agui.add_webhook(text, text, text[], text, text) from public;
