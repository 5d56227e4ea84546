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

comment on function agui.remove_webhook(text) is
    'Removes a webhook, with its requests that wait or have failed. Returns false if there is no such '
    'webhook. Requires agui_maintainer.';

revoke execute on function agui.remove_webhook(text) from public;
