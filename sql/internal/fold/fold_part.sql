create or replace function agui_internal.fold_part(before agui_internal.fold, key text, activity_type text, content text)
returns agui_internal.fold
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    result agui_internal.fold := before;
    place  constant int := array_position(agui_internal.fold_keys(before.message_ids, before.bodies), key);
begin
    result.message_nos[place] := null;
    if content is not null then
        result.bodies[place] := agui_internal.json_unguard(
            agui_internal.json_member_set(
                agui_internal.json_member_set(agui_internal.json_guard(before.bodies[place]), 'activityType', activity_type),
                'content',
                content
            )
        );
    end if;
    return result;
end
$function$;

comment on function agui_internal.fold_part(agui_internal.fold, text, text, text) is
    'A fold in which the first message with an id is a message of its own, no longer the same as others; with another activity type and '
    'content (guarded JSON text) unless they are null.';

revoke execute on function agui_internal.fold_part(agui_internal.fold, text, text, text) from public;
