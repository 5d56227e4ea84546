-- A transition function in C, and so in constant time: one in SQL or PL/pgSQL would copy what was collected at every row.
create or replace aggregate agui.json_patch_agg(patch jsonb) (
    sfunc = array_append,
    stype = jsonb[],
    finalfunc = agui_internal.json_patch_agg_result,
    parallel = safe
);

comment on aggregate agui.json_patch_agg(jsonb) is
    'What RFC 6902 patches make of the empty object, in the order given: the state that a stream of state '
    'deltas means. Each is applied whole or, when one of its operations fails, not at all, as a client of the '
    'stream does it; agui.json_patch raises an error instead. No row gives null. To start from another '
    'document: agui_internal.json_patch_all(document, array_agg(patch order by seq)). Example: select '
    'agui.json_patch_agg(payload::jsonb -> ''delta'' order by seq) from agui.events(''my-thread'') where type '
    '= ''STATE_DELTA''';

revoke execute on function agui.json_patch_agg(jsonb) from public;
