-- The only place of each default. TestLimitsAreTheSameInSQLAndGo compares those of folds with
-- compaction.DefaultLimits.
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

comment on function agui_internal.known_settings() is
    'All settings with their defaults and ranges. A database has a row for each in '
    'agui_internal.setting. After a restore without data the rows are missing, and the defaults '
    'apply.';

revoke execute on function agui_internal.known_settings() from public;
