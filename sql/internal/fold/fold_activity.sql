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
    document constant jsonb := coalesce(agui_internal.json_guard_numbers(content), '{}');
    patched  record;
begin
    octets := octet_length(document::text);
    patched := agui_internal.json_patch_apply(document, agui_internal.json_patches(patches), limits, fuel, true);
    if patched.last_applied > 0 then
        content := agui_internal.json_guarded_from_jsonb(patched.document);
    end if;
    last_applied := patched.last_applied;
    spent := patched.spent;
end
$function$;

comment on function agui_internal.fold_activity(text, text[], agui_internal.fold_limits, bigint) is
    'The content of an activity (guarded JSON text; null: none) after patches, of which those that fail do nothing; which of them is the last that '
    'did not (0: none), the fuel that they used, and the size of the content before. Once they use more than fuel, the rest is left out.';

revoke execute on function agui_internal.fold_activity(text, text[], agui_internal.fold_limits, bigint) from public;
