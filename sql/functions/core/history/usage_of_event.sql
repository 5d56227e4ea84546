create or replace function agui_internal.usage_of_event(event json)
returns setof agui_internal.usage_entry
language plpgsql
stable
parallel safe
rows 2
set search_path = pg_catalog, pg_temp
as $$
declare
    event_type constant text := event ->> 'type';
    event_name constant text := case
        when event_type in ('RUN_FINISHED', 'RUN_ERROR') then ''
        when event_type = 'CUSTOM' then nullif(event ->> 'name', '')
    end;
    own_path constant text[] := case event_name when '' then '{usage}' when 'usage' then '{value}' end;
    -- TanStack names it beside the usage.
    model constant text := agui_internal.json_string_text(coalesce(event -> 'model', event #> '{metadata,tanstack,model}')::text);
    place record;
begin
    for place in
        select known.path, known.names
        from (
            select mapping.path, mapping.names, mapping.set_at
            from agui_internal.usage_mapping as mapping
            where mapping.custom = event_name
            union all
            select own_path, '{}', null
            where own_path is not null
        ) as known
        order by known.path is distinct from own_path, known.set_at desc nulls last
    loop
        return query select * from agui_internal.usage_entries(event #> place.path, place.names, model);
        exit when found;
    end loop;
end
$$;

comment on function agui_internal.usage_of_event(json) is
    'The usage that an end of a run or a CUSTOM event (guarded JSON) reports: in its own place, else where '
    'agui.map_usage says, the newest mapping first. No rows: it reports none.';

revoke execute on function agui_internal.usage_of_event(json) from public;
