create or replace function agui_internal.fold_patch_now(
    in node agui_internal.fold_node,
    in node_no int,
    in changes agui_internal.fold_change[],
    in patch text,
    in limits agui_internal.patch_limits,
    out before jsonb,
    out patched jsonb,
    out applied boolean
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    part record;
begin
    part := agui_internal.fold_activity(
        node.document,
        node.content,
        array(
            select change.text
            from unnest(changes[coalesce(node.content_since, 0) + 1 :]) with ordinality as change
            where change.node = node_no and change.kind = 'patch'
            order by change.ordinality
        ),
        limits
    );
    before := part.document;
    part := agui_internal.fold_activity(before, node.content, array[patch], limits);
    patched := part.document;
    applied := part.applied > 0;
end
$function$;

comment on function agui_internal.fold_patch_now(agui_internal.fold_node, int, agui_internal.fold_change[], text, agui_internal.patch_limits) is
    'The document of an activity with the patches that wait for it, and with one more: whether that succeeds, and what it makes.';

revoke execute on function agui_internal.fold_patch_now(agui_internal.fold_node, int, agui_internal.fold_change[], text, agui_internal.patch_limits) from public;
