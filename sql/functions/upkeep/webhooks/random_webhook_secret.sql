create or replace function agui_internal.random_webhook_secret()
returns text
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    -- 244 random bits.
    select 'whsec_' || encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64')
$$;

comment on function agui_internal.random_webhook_secret() is 'A new secret for the signatures of a webhook.';

revoke execute on function agui_internal.random_webhook_secret() from public;
