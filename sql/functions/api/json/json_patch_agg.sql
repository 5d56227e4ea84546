-- array_append is written in C and takes constant time. A transition function in SQL or PL/pgSQL
-- would copy the collected array for every row.
create or replace aggregate agui.json_patch_agg(patch jsonb) (
    sfunc = array_append,
    stype = jsonb[],
    finalfunc = agui_internal.json_patch_agg_result,
    parallel = safe
);

comment on aggregate agui.json_patch_agg(jsonb) is
    'Applies RFC 6902 patches to an empty object in the given order and returns the result: the '
    'state that a stream of state deltas describes. A patch with a failing operation is skipped as '
    'a whole, as AG-UI clients do (agui.json_patch raises an error instead). Returns null for no '
    'rows. To start from another document: agui_internal.json_patch_all(document, array_agg(patch '
    'order by seq)). Example: select agui.json_patch_agg(payload::jsonb -> ''delta'' order by seq) '
    'from agui.events(''my-thread'') where type = ''STATE_DELTA''';

revoke execute on function agui.json_patch_agg(jsonb) from public;
