create or replace function agui_internal.channel_versions(document json)
returns table (channel text, version text)
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    if strpos(document::text, '\') = 0 then
        if json_typeof(document -> 'channel_versions') = 'object' then
            return query select member.key, member.value from json_each_text(document -> 'channel_versions') as member;
        end if;
        return;
    end if;
    return query
    select named.name, case when json_typeof(named.value) = 'string' then agui_internal.json_text(named.value::text) else named.value::text end
    from agui_internal.json_members(document) as member
    cross join agui_internal.json_members(case when json_typeof(member.value) = 'object' then member.value end) as named
    where member.name = 'channel_versions';
end
$$;

comment on function agui_internal.channel_versions(json) is
    'The versions of the channels that belong to a checkpoint, as its document names them.';

revoke execute on function agui_internal.channel_versions(json) from public;
