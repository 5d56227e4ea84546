create or replace function agui.map_usage(path text[], names jsonb default '{}', custom text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    unknown text;
begin
    perform agui_internal.refuse_unless_operator('say where usage is reported');
    if path is null or array_position(path, null) is not null then
        raise exception using
            errcode = '22023',
            message = 'map_usage: path names the members that lead from the event to the report',
            hint = 'For example array[''metadata'', ''usage''], or array[]::text[] for the event itself. agui.unmap_usage() removes all mappings.';
    end if;
    if custom = '' then
        raise exception using errcode = '22023', message = 'map_usage: custom must be the name of a CUSTOM event, or null for the ends of runs';
    end if;
    if jsonb_typeof(names) is distinct from 'object' then
        raise exception using errcode = '22023', message = 'map_usage: names must be an object';
    end if;
    select name.key into unknown
    from jsonb_each(names) as name
    where name.key <> all (agui_internal.usage_members()) or jsonb_typeof(name.value) <> 'string'
    limit 1;
    if found then
        raise exception using
            errcode = '22023',
            message = format('map_usage: names maps "%s", which is no member of usage, or not to a text', unknown),
            hint = format('The members are %s.', array_to_string(agui_internal.usage_members(), ', '));
    end if;
    -- A step of the job in progress ends first, also the first one. The next one begins with all runs.
    lock table agui_internal.projection in exclusive mode;
    delete from agui_internal.projection;
    insert into agui_internal.usage_mapping as mapping (custom, path, names)
    values (coalesce(map_usage.custom, ''), map_usage.path, map_usage.names)
    on conflict on constraint usage_mapping_pkey do update
    set names = excluded.names, set_at = excluded.set_at;
end
$$;

comment on function agui.map_usage(text[], jsonb, text) is
    'Says where agents report the tokens that a run used, if not in the member usage of RUN_FINISHED or RUN_ERROR: '
    'path leads from these events, or from the CUSTOM events of the name custom, to an object, or a list of objects, '
    'for example {metadata,usage}, or {value} of a CUSTOM event; {} is the event itself. names '
    'says how a member is called there, by its name in AG-UI, with dots between the names of nested ones: '
    '{"inputTokens": "prompt_tokens"}; others have the names that agui.usage knows. Mappings of other paths or events '
    'stay beside it. Of a run the ends come first, and of an event its own place, then the newest mapping. agui.usage '
    'and, after the next calls of agui.project(), agui.usage_fact read it so, for all '
    'runs. Requires agui_maintainer. '
    'Errors: 22023 no path, an empty name of the event or an unknown member, 42501 the role has not all scopes.';

revoke execute on function agui.map_usage(text[], jsonb, text) from public;
