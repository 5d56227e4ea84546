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
            message = format('the setting agui.session_versions is "%s": it must be a whole number, 1 or more', setting),
            hint = 'alter database … set agui.session_versions = 10, or alter role …; a session has the value from its next connection on.';
    end if;
    return setting::int;
end
$$;

comment on function agui_internal.session_versions_kept() is
    'How many versions of a document of session state are kept, of each run that it was saved at: the setting agui.session_versions, 10 unless set.';

revoke execute on function agui_internal.session_versions_kept() from public;
