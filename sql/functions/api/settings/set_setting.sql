create or replace function agui.set_setting(name text, value text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    setting agui_internal.setting;
    wanted  numeric;
begin
    perform agui_internal.refuse_unless_operator('change a setting');
    select stored.* into setting
    from agui_internal.setting as stored
    where stored.name = set_setting.name;
    if not found then
        raise exception using
            errcode = '22023',
            message = format('unknown setting "%s"', name),
            hint = case
                when exists (select from agui_internal.known_settings() as known where known.name = set_setting.name)
                    then 'Its row is missing, for example after a restore without data. Run "pgagui migrate up" to add it.'
                else format('The settings are: %s.', (select string_agg(known.name, ', ' order by known.name) from agui_internal.known_settings() as known))
            end;
    end if;
    begin
        wanted := case
            when set_setting.value is null then setting.default_value
            when setting.unit = 'seconds' then extract(epoch from set_setting.value::interval)
            when setting.unit = 'bytes' then pg_size_bytes(set_setting.value)
            else set_setting.value::numeric
        end;
    exception
        when data_exception then
            raise exception using
                errcode = '22023',
                message = format('setting "%s": "%s" is not a value in %s', name, set_setting.value, setting.unit),
                hint = case setting.unit
                    when 'seconds' then 'Use an interval, for example "90 seconds" or "5 minutes".'
                    when 'bytes' then 'Use a size, for example "16 MB".'
                    else 'Use a number.'
                end;
    end;
    if wanted not between setting.min_value and setting.max_value then
        raise exception using
            errcode = '22023',
            message = format('setting "%s": %s is out of range; it must be between %s and %s %s',
                name, set_setting.value, setting.min_value, setting.max_value, setting.unit);
    end if;
    update agui_internal.setting as stored
    set value = wanted
    where stored.name = set_setting.name;
end
$$;

comment on function agui.set_setting(text, text) is
    'Changes a setting of this database (agui.setting) for all later transactions. The value is an '
    'interval if the unit is seconds, a size such as "16 MB" if it is bytes, otherwise a number; '
    'null restores the default. Requires agui_maintainer and, while row-level security is on, an '
    'operator. '
    'Errors: 22023 unknown setting or invalid value.';

revoke execute on function agui.set_setting(text, text) from public;
