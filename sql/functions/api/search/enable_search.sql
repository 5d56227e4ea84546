create or replace function agui.enable_search(language text default 'simple')
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('turn search on');
    if enable_search.language is null or not exists (
        select
        from pg_ts_config as config
        join pg_namespace as namespace on namespace.oid = config.cfgnamespace
        where enable_search.language = format('%I.%I', namespace.nspname, config.cfgname)
            or namespace.nspname = 'pg_catalog' and enable_search.language = config.cfgname
    ) then
        raise exception using
            errcode = '22023',
            message = format('"%s" is not a text search configuration', enable_search.language),
            hint = format(
                'There are %s; one of your own is named with its schema.',
                (select string_agg(cfgname, ', ' order by cfgname) from pg_ts_config where cfgnamespace = 'pg_catalog'::regnamespace)
            );
    end if;
    -- A step of the job in progress ends first.
    delete from agui_internal.projection;
    truncate agui.message_text;
    insert into agui_internal.search as search (language)
    values (enable_search.language)
    on conflict (is_only) do update
    set language = excluded.language, enabled_at = excluded.enabled_at;
end
$$;

comment on function agui.enable_search(text) is
    'Turns agui.search on, or changes its language, a text search configuration such as english (simple: '
    'words as they are). The next calls of agui.project() index the texts of all messages; they take about '
    'as much space as the log. Requires agui_maintainer. '
    'Errors: 22023 unknown language, 42501 the role has not all scopes.';

revoke execute on function agui.enable_search(text) from public;
