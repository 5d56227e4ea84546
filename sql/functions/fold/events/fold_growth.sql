-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_growth(seq bigint, key text, pieces text)
returns agui_internal.fold_step
language sql
immutable
parallel safe
return (
    seq,
    'grow',
    case when key ^@ 'call ' then substr(key, 6) else key end,
    key ^@ 'call ',
    null,
    null,
    replace(rtrim(pieces, E'\x01'), E'"\x01"', ''),
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    null
)::agui_internal.fold_step;

comment on function agui_internal.fold_growth(bigint, text, text) is
    'The step that appends pieces to a string. pieces: JSON strings, each followed by the '
    'separator U+0001, which no JSON text contains. key: the id of a message, or ''call '' and the '
    'id of a tool call.';

revoke execute on function agui_internal.fold_growth(bigint, text, text) from public;
