create or replace function agui_internal.life_cycle_members(event json)
returns json
language plpgsql
volatile
strict
set search_path = pg_catalog, pg_temp
as $$
declare
    name    text;
    member  json;
    members text[];
    opaque  text;
    plain   json;
begin
    select
        case
            when agui_internal.has_evident_type(given.bytes) and given.bytes not like all (array['{"type":"RUN\\_%'::bytea, '{"type": "RUN\\_%'::bytea, agui_internal.question_pattern()])
                then '{"type":""}'
        end
    into plain
    from (select agui_internal.json_bytes(event) as bytes offset 0) as given;
    if plain is not null then
        return plain;
    end if;

    loop
        members := '{}';
        -- A statement for each member, because PostgreSQL 15 keeps what an operator read until the
        -- statement ends.
        begin
            foreach name in array array['type', 'name', 'runId', 'threadId', 'parentRunId', 'outcome', 'code', 'message'] loop
                member := event -> name;
                if opaque is not null then
                    member := replace(replace(member::text, '\\u', '\u'), '\\x', '\\');
                end if;
                member := agui_internal.json_guarded(member);
                members := members || (to_json(name) || ':' || member);
                exit when name = 'type'
                    and (json_typeof(member) = 'string' and member #>> '{}' = any (array['RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR'] || agui_internal.event_types('ask'))) is not true;
            end loop;
            return '{' || array_to_string(members, ',') || '}';
        exception
            -- A string with \u0000 or half a surrogate pair. The escapes are hidden as in
            -- agui_internal.json_members, in a statement each for the sake of memory.
            when data_exception then
                if opaque is not null then
                    raise;
                end if;
                -- A name with an escape of a letter would not be found.
                if event::text like any (array['%\\u004%', '%\\u005%', '%\\u006%', '%\\u007%']) then
                    return agui_internal.json_guarded(event);
                end if;
                opaque := replace(event::text, '\\', '\x');
                opaque := replace(opaque, '\u', '\\u');
                opaque := replace(opaque, '\x', '\\x');
                event := opaque;
                opaque := '';
        end;
    end loop;
end
$$;

comment on function agui_internal.life_cycle_members(json) is
    'Of a large event, the members that tell what it means for the life cycle of its run, as '
    'agui_internal.json_guarded writes them. The type is "" if it evidently belongs to none.';

revoke execute on function agui_internal.life_cycle_members(json) from public;
