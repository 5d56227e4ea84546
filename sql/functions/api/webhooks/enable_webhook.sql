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

comment on function agui.enable_webhook(text, boolean) is
    'Enables a webhook, or disables it. What happens while it is disabled is sent once it is enabled, '
    'unless it is older than 30 days. Returns false if there is no such webhook. Requires '
    'agui_maintainer.';

revoke execute on function agui.enable_webhook(text, boolean) from public;
