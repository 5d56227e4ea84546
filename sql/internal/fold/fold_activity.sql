create or replace function agui_internal.fold_activity(
    inout document jsonb,
    in content text,
    in patches text[],
    in limits agui_internal.patch_limits,
    out applied int
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    patched record;
begin
    patched := agui_internal.json_patch_apply(
        coalesce(nullif(coalesce(document, agui_internal.json_guard_numbers(content)::jsonb), 'null'), '{}'),
        agui_internal.json_patches(patches),
        limits
    );
    document := case when patched.applied > 0 then patched.document else document end;
    applied := patched.applied;
end
$function$;

comment on function agui_internal.fold_activity(jsonb, text, text[], agui_internal.patch_limits) is
    'The content of an activity after patches (guarded JSON text), of which those that fail do nothing, and how many did not. The content '
    'before is document or, where that is null, content (guarded JSON text).';

revoke execute on function agui_internal.fold_activity(jsonb, text, text[], agui_internal.patch_limits) from public;
