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

comment on function agui.rotate_webhook_secret(text, text, interval) is
    'Gives a webhook another secret (null: a random one), and returns it. For the time of keep_old each '
    'request has two signatures, one of the old secret too, so that endpoints can be changed '
    'meanwhile. Returns null if there is no such webhook. Requires agui_maintainer. '
    'Errors: 22023 the secret or keep_old is not valid.';

revoke execute on function agui.rotate_webhook_secret(text, text, interval) from public;
