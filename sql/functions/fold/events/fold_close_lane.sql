-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.fold_close_lane(lanes jsonb, owner text)
returns jsonb
language plpgsql
immutable
parallel safe
as $function$
begin
    if pg_catalog.jsonb_array_length(lanes) operator(pg_catalog.=) 1 then
        return case when lanes[0]['lane'] operator(pg_catalog.<>) coalesce(owner, 'null')::pg_catalog.jsonb then lanes end;
    end if;
    return (
        select pg_catalog.jsonb_agg(lane.value order by lane.position)
        from pg_catalog.jsonb_array_elements(lanes) with ordinality as lane (value, position)
        where lane.value['lane'] operator(pg_catalog.<>) coalesce(owner, 'null')::pg_catalog.jsonb
    );
end
$function$;

comment on function agui_internal.fold_close_lane(jsonb, text) is
    'The open lanes without the lane of a subagent (a JSON string of guarded text; null: the main '
    'agent); null if none remains.';

revoke execute on function agui_internal.fold_close_lane(jsonb, text) from public;
