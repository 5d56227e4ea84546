create or replace function agui_internal.malformed_events_of(run agui.run)
returns table (seq bigint, type text, problem text)
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    needed constant jsonb := agui_internal.needed_fields();
begin
    return query
    select batch.first_seq + element.position - 1, named.type, lacking.text
    from agui.batch as batch
    cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
    cross join lateral (select agui_internal.json_guarded(element.value) as event offset 0) as guarded
    cross join lateral (select guarded.event ->> 'type' as type offset 0) as named
    cross join lateral (
        select
            case
                when named.type like 'EventType.%' then format('its type is not "%s"', substr(named.type, 11))
                else string_agg(
                    case
                        when python.value is not null then format('it has "%s", not "%s"', python.name, field.name)
                        when found.value is null then format('it has no "%s"', field.name)
                        else format('"%s" is of type %s, not %s', field.name, json_typeof(found.value), replace(field.kinds, ' | ', ' or '))
                    end,
                    ', ' order by field.name
                )
            end as text
        from jsonb_each_text(needed -> named.type) as field (name, kinds)
        cross join lateral (select guarded.event -> field.name as value offset 0) as found
        cross join lateral (select lower(regexp_replace(field.name, '([A-Z])', '_\1', 'g')) as name) as spelled
        cross join lateral (select spelled.name, case when found.value is null and spelled.name <> field.name then guarded.event -> spelled.name end as value offset 0) as python
        where (json_typeof(found.value) = any (string_to_array(field.kinds, ' | '))) is not true
    ) as lacking
    where batch.thread_key = run.thread_key
        and batch.run_no = run.run_no
        and batch.first_seq >= run.first_seq
        and (run.last_seq is null or batch.first_seq <= run.last_seq)
        and lacking.text is not null
    order by batch.first_seq, element.position;
end
$$;

comment on function agui_internal.malformed_events_of(agui.run) is
    'The events of a run that have no effect, because they lack a field that their type needs (agui_internal.needed_fields), '
    'or have a type of Python, with the reason.';

revoke execute on function agui_internal.malformed_events_of(agui.run) from public;
