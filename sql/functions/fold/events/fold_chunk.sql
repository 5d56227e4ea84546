-- Chunks are a shorthand. A lane (a subagent, or the main agent) has at most one open stream, and a
-- chunk without an id continues the stream of its lane. A chunk without a lane continues the stream
-- of the main agent, or the only open stream of its kind.
-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.fold_chunk(
    inout lanes jsonb,
    in kind text,
    inout id text,
    in owner text,
    out goes_on boolean
)
language plpgsql
immutable
parallel safe
as $function$
declare
    lane       pg_catalog.jsonb;
    stream     pg_catalog.jsonb;
    candidates int := 0;
begin
    for position in 1 .. coalesce(pg_catalog.jsonb_array_length(lanes), 0) loop
        lane := lanes[position operator(pg_catalog.-) 1];
        continue when (lane operator(pg_catalog.->>) 'kind') operator(pg_catalog.<>) kind;
        if id is not null then
            stream := coalesce(stream, case when lane['id'] operator(pg_catalog.=) id::pg_catalog.jsonb then lane end);
        elsif owner is not null then
            stream := coalesce(stream, case when lane['lane'] operator(pg_catalog.=) owner::pg_catalog.jsonb then lane end);
        elsif lane['lane'] operator(pg_catalog.=) 'null' then
            stream := lane;
            exit;
        else
            candidates := candidates operator(pg_catalog.+) 1;
            stream := case when candidates operator(pg_catalog.=) 1 then lane end;
        end if;
    end loop;

    goes_on := stream is not null;
    if goes_on then
        id := agui_internal.json_string_token(stream['id']::pg_catalog.text);
    elsif id is not null then
        lanes := coalesce(agui_internal.fold_close_lane(lanes, owner), '[]')
            operator(pg_catalog.||) pg_catalog.jsonb_build_object('lane', owner::pg_catalog.jsonb, 'kind', kind, 'id', id::pg_catalog.jsonb);
    end if;
end
$function$;

comment on function agui_internal.fold_chunk(jsonb, text, text, text) is
    'The id that a chunk belongs to (null: none), whether it continues an open stream, and the '
    'lanes that are open after it. Ids and owner are JSON strings of guarded text, null if the '
    'chunk does not state them.';

revoke execute on function agui_internal.fold_chunk(jsonb, text, text, text) from public;
