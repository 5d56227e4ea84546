create or replace function agui_internal.fold_activity(
    inout content text,
    in patches text[],
    in limits agui_internal.fold_limits,
    in fuel bigint,
    out last_applied int,
    out spent bigint,
    out octets bigint
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    is_unread constant boolean := coalesce(agui_internal.json_has_too_many_elements(content, limits.document_bytes), false);
    document  constant jsonb := case when is_unread then '0' else coalesce(agui_internal.json_guard_numbers(content), '{}') end;
    patched   record;
begin
    octets := agui_internal.json_size(case when is_unread then content else document::text end);
    patched := agui_internal.json_patch_apply(
        document, agui_internal.json_patches(patches, limits.document_bytes), limits, fuel, true, is_unread
    );
    if patched.last_applied > 0 then
        content := agui_internal.json_guarded_from_jsonb(patched.document);
    end if;
    last_applied := patched.last_applied;
    spent := patched.spent;
end
$function$;

comment on function agui_internal.fold_activity(text, text[], agui_internal.fold_limits, bigint) is
    'Applies patches to the content of an activity (guarded JSON text; null: none). A patch that '
    'fails has no effect. Returns the number of the last patch that succeeded (0: none), the fuel '
    'used, and the size of the content before. When more than fuel is used, the remaining patches '
    'are skipped.';

revoke execute on function agui_internal.fold_activity(text, text[], agui_internal.fold_limits, bigint) from public;
