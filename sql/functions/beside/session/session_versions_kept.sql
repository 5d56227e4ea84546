create or replace function agui_internal.session_versions_kept()
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    setting text := coalesce(nullif(current_setting('agui.session_versions', true), ''), '10');
begin
    if setting !~ '^0*[1-9][0-9]{0,8}$' then
        raise exception using
            errcode = 'invalid_parameter_value',
            message = format('the setting agui.session_versions is "%s", expected a whole number of at least 1', setting),
            hint = 'Use alter database … set agui.session_versions = 10, or alter role …; it takes effect with the next connection.';
    end if;
    return setting::int;
end
$$;

comment on function agui_internal.session_versions_kept() is
    'How many versions of a session state document are kept for each run at which it was saved: '
    'the setting agui.session_versions, by default 10.';

revoke execute on function agui_internal.session_versions_kept() from public;
