create or replace function agui_internal.define_settings()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into agui_internal.setting as stored (name, value, unit, default_value, min_value, max_value, description)
    select known.name, known.default_value, known.unit, known.default_value, known.min_value, known.max_value, known.description
    from (values
        (
            'lease', 300, 'seconds', 0, 31536000,
            'How long a run may be in progress without a sign of life before it counts as stale.'
        ),
        (
            'heartbeat_lease', 30, 'seconds', 0, 31536000,
            'The same for a run whose writer calls agui.keep_alive, as a recorder does. It is never longer than the lease.'
        ),
        (
            'document_bytes', 16777216, 'bytes', 0, 67108864,
            'The size of a state or an activity after each operation of a JSON patch, as jsonb prints it. A patch that goes beyond it fails.'
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
            'The work of folding one run: an octet that its events bring is 1.'
        )
    ) as known (name, default_value, unit, min_value, max_value, description)
    -- A look first: where nothing changes, nothing is written.
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
end
$$;

comment on function agui_internal.define_settings() is
    'Adds the settings that are missing, with their defaults, and brings the others up to date; values that somebody has changed stay. '
    'agui.grant_access() calls it, and so every migration does.';

revoke execute on function agui_internal.define_settings() from public;
