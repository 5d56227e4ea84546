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

comment on function agui.take_over_webhooks(text) is
    'Makes this database the one that sends the requests of a webhook, or (null) of all. After a dump '
    'was restored into another database, that one sends nothing before this call, because the one '
    'that the dump comes from may do so. Call it only if that one is gone. Returns the number of '
    'webhooks that it did not send before. Requires agui_maintainer.';

revoke execute on function agui.take_over_webhooks(text) from public;
