-- Chunks are a shorthand: a lane (a subagent, or the main agent) has at most one stream open, and a chunk that names no id goes on with
-- the one of its lane. Without a lane either, it goes on with that of the main agent, or with the only one of its kind.
--
-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
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
    lane       jsonb;
    stream     jsonb;
    candidates int := 0;
begin
    for position in 0 .. coalesce(jsonb_array_length(lanes), 0) - 1 loop
        lane := lanes -> position;
        continue when lane ->> 'kind' <> kind;
        if id is not null then
            stream := coalesce(stream, case when lane -> 'id' = id::jsonb then lane end);
        elsif owner is not null then
            stream := coalesce(stream, case when lane -> 'lane' = owner::jsonb then lane end);
        elsif lane -> 'lane' = 'null' then
            stream := lane;
            exit;
        else
            candidates := candidates + 1;
            stream := case when candidates = 1 then lane end;
        end if;
    end loop;

    goes_on := stream is not null;
    if goes_on then
        id := agui_internal.json_string_token((stream -> 'id')::text);
    elsif id is not null then
        lanes := coalesce(agui_internal.fold_close_lane(lanes, owner), '[]')
            || jsonb_build_object('lane', owner::jsonb, 'kind', kind, 'id', id::jsonb);
    end if;
end
$function$;

comment on function agui_internal.fold_chunk(jsonb, text, text, text) is
    'The id that a chunk is for, whether it goes on with an open stream, and the lanes that are open after it. No id: it is for none. '
    'Ids and owner are JSON strings of guarded text, null when the chunk does not say.';

revoke execute on function agui_internal.fold_chunk(jsonb, text, text, text) from public;
