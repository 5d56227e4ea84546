create or replace function agui_internal.define_settings()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into agui_internal.setting as stored (name, value, unit, default_value, min_value, max_value, description)
    select known.name, known.default_value, known.unit, known.default_value, known.min_value, known.max_value, known.description
    from agui_internal.known_settings() as known
    -- Compare first: if nothing changes, nothing is written.
    left join agui_internal.setting as current using (name)
    where (current.unit, current.default_value, current.min_value, current.max_value, current.description)
        is distinct from (known.unit, known.default_value, known.min_value, known.max_value, known.description)
    on conflict (name) do update
    set value = case
            when stored.value = stored.default_value then excluded.default_value
            else least(greatest(stored.value, excluded.min_value), excluded.max_value)
        end,
        unit = excluded.unit,
        default_value = excluded.default_value,
        min_value = excluded.min_value,
        max_value = excluded.max_value,
        description = excluded.description;

    insert into agui_internal.erasure_salt (salt)
    select uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
    where not exists (select from agui_internal.erasure_salt)
    on conflict do nothing;
end
$$;

comment on function agui_internal.define_settings is
    'Adds missing settings with their defaults and updates the definitions of the others. Changed '
    'values are kept. Creates the salt of agui.erasure if it is missing. agui.grant_access() calls '
    'it, and therefore every migration does.';

create or replace function agui_internal.limits_of_folds(rules int default 1)
returns agui_internal.fold_limits
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    limits agui_internal.fold_limits;
begin
    perform agui_internal.refuse_other_rules(rules);
    select
        max(limited.value) filter (where limited.name = 'document_bytes'),
        max(limited.value) filter (where limited.name = 'document_depth'),
        max(limited.value) filter (where limited.name = 'patch_operations'),
        max(limited.value) filter (where limited.name = 'patch_copied_bytes'),
        max(limited.value) filter (where limited.name = 'patch_shifted_items'),
        max(limited.value) filter (where limited.name = 'fold_bytes'),
        max(limited.value) filter (where limited.name = 'fold_messages'),
        max(limited.value) filter (where limited.name = 'fold_lanes'),
        max(limited.value) filter (where limited.name = 'fold_fuel')
    into limits
    from (
        select known.name, coalesce(setting.value, known.default_value) as value
        from agui_internal.known_settings() as known
        left join agui_internal.setting as setting using (name)
    ) as limited;
    return limits;
end
$$;

comment on function agui_internal.limits_of_folds is
    'The limits of folds and of JSON patches, from the settings, for a fold by the rules of that '
    'version. Programs from before there were versions give none, and may not fold.';

create or replace function agui_internal.refuse_other_rules(rules int)
returns void
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if rules is distinct from agui_internal.rules() then
        raise exception using
            errcode = '0A000',
            message = format('this program folds events by rules of version %s, the database by version %s', coalesce(rules, 1), agui_internal.rules()),
            hint = 'Replace the program by one of the version that has upgraded the database (pgagui doctor names it).';
    end if;
end
$$;

comment on function agui_internal.refuse_other_rules is
    'Refuses a fold of a program that follows other rules than the database (0A000): what it makes of '
    'the same events may be something else.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.limits_of_jsonb()
returns agui_internal.fold_limits
language sql
immutable
parallel safe
return (
    67108864,             -- document_bytes
    1000,                 -- document_depth
    2147483647,           -- patch_operations
    268435456,            -- patch_copied_bytes
    9223372036854775807,  -- patch_shifted_items
    null, null, null, null
)::agui_internal.fold_limits;

comment on function agui_internal.limits_of_jsonb is
    'The limits of JSON patches outside of folds, whatever the settings are: what jsonb can '
    'certainly hold.';

-- PL/pgSQL caches its plans, while its callers are inlined: each heartbeat reads settings several
-- times.
create or replace function agui_internal.setting_value(name text)
returns numeric
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    value constant numeric := (select setting.value from agui_internal.setting as setting where setting.name = setting_value.name);
begin
    if value is not null then
        return value;
    end if;
    return (select known.default_value from agui_internal.known_settings() as known where known.name = setting_value.name);
end
$$;

comment on function agui_internal.setting_value is
    'The value of a setting, in its unit; the default if its row is missing.';

-- The only place of each default. TestLimitsAreTheSameInSQLAndGo compares those of folds with
-- compaction.DefaultLimits.
-- role: reader, monitor
create or replace function agui_internal.known_settings()
returns table (name text, default_value numeric, unit text, min_value numeric, max_value numeric, description text)
language sql
immutable
parallel safe
begin atomic
    values
    (
        'lease', 300::numeric, 'seconds', 0::numeric, 31536000::numeric,
        'How long a run may be in progress without a sign of life before it counts as stale.'
    ),
    (
        'heartbeat_lease', 30, 'seconds', 0, 31536000,
        'The same for a run whose writer calls agui.keep_alive, as a recorder does. It is never longer than the lease.'
    ),
    (
        'document_bytes', 16777216, 'bytes', 0, 67108864,
        'The size of a state or an activity after each operation of a JSON patch: the bytes that jsonb prints, and 32 for each element. '
            'A patch that goes beyond it fails.'
    ),
    (
        'document_depth', 1000, 'count', 0, 1000,
        'How deep a JSON patch may nest arrays and objects in a state or an activity.'
    ),
    (
        'patch_operations', 10000, 'count', 0, 1000000,
        'The operations of one JSON patch.'
    ),
    (
        'patch_copied_bytes', 67108864, 'bytes', 0, 1073741824,
        'The size of all values together that the operations "copy" and "move" of one JSON patch put in place.'
    ),
    (
        'patch_shifted_items', 100000000, 'count', 0, 10000000000,
        'The array items behind the places where one JSON patch inserts or removes an item, all such operations together.'
    ),
    (
        'fold_bytes', 67108864, 'bytes', 0, 268435456,
        'The size of a conversation as a fold has it: its messages, state and interrupts together.'
    ),
    (
        'fold_messages', 200000, 'count', 0, 1000000,
        'The messages of a conversation.'
    ),
    (
        'fold_lanes', 256, 'count', 0, 10000,
        'The streams of chunks that are open at the same time.'
    ),
    (
        'fold_fuel', 4000000000, 'count', 0, 1000000000000,
        'The work of folding one run: each byte that its events bring counts 1.'
    ),
    (
        'call_delay', 10, 'seconds', 0, 31536000,
        'How long a tool call must have no result before it counts as a question: agui.waiting lists it, and webhooks report it.'
    );
end;

comment on function agui_internal.known_settings is
    'All settings with their defaults and ranges. A database has a row for each in '
    'agui_internal.setting. After a restore without data the rows are missing, and the defaults '
    'apply.';
