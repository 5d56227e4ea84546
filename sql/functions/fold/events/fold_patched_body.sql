create or replace function agui_internal.fold_patched_body(body text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    select agui_internal.json_unguard(
        agui_internal.json_member_set(
            agui_internal.json_guard(body),
            'content',
            agui_internal.json_guarded_from_jsonb(
                agui_internal.json_guard_numbers((agui_internal.json_guard(body)::json -> 'content')::text)::jsonb
            )
        )
    )
$function$;

comment on function agui_internal.fold_patched_body(text) is
    'An activity whose content was patched outside of the database, in the spelling that patches '
    'in SQL produce: that of jsonb.';

revoke execute on function agui_internal.fold_patched_body(text) from public;
