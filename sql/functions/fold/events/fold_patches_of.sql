create or replace function agui_internal.fold_patches_of(changes agui_internal.fold_change[], last_patch int)
returns text[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    patches text[] := '{}';
    place   int := last_patch;
begin
    while place is not null loop
        patches := array_append(patches, changes[place].text);
        place := changes[place].previous;
    end loop;
    return array(select patch.text from unnest(patches) with ordinality as patch (text, position) order by patch.position desc);
end
$function$;

comment on function agui_internal.fold_patches_of(agui_internal.fold_change[], int) is
    'The pending patches of an activity among the changes of agui_internal.fold_events, in order, '
    'given the position of the last of them.';

revoke execute on function agui_internal.fold_patches_of(agui_internal.fold_change[], int) from public;
