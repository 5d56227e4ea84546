create or replace function agui.fold_close_lane(lanes jsonb, owner text)
returns jsonb
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return (
        select jsonb_agg(lane.value order by lane.position)
        from jsonb_array_elements(lanes) with ordinality as lane (value, position)
        where lane.value -> 'lane' <> coalesce(owner, 'null')::jsonb
    );
end
$function$;

comment on function agui.fold_close_lane(jsonb, text) is
    'The open lanes without the one of a subagent (a JSON string of guarded text; null: the main agent); null when none is left.';

revoke execute on function agui.fold_close_lane(jsonb, text) from public;
