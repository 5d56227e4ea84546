-- What grows or is merged stands apart from the rest, which is the head. Marks in it say where the parts belong: "\\content", "\\metadata"
-- and "\\calls", for the tool calls of a message once one of them changes. Guarded text has no such strings otherwise.
-- agui_internal.fold_settle puts the parts back.
--
-- Called in innermost loops: to pin the search path would take longer than the work. Every name is qualified instead, operators too.
create or replace function agui_internal.fold_open(
    in body text,
    in is_call boolean,
    out head text,
    out content text,
    out metadata text,
    out activity_type text
)
language plpgsql
immutable
parallel safe
as $function$
declare
    whole    constant pg_catalog.json := body;
    called   constant pg_catalog.json := case when is_call then whole operator(pg_catalog.->) 'function' end;
    function constant pg_catalog.json := case when pg_catalog.json_typeof(called) operator(pg_catalog.=) 'object' then called end;
    given    constant pg_catalog.json := whole operator(pg_catalog.->) 'metadata';
begin
    metadata := case when pg_catalog.json_typeof(given) operator(pg_catalog.=) 'object' then given end;
    activity_type := case when not is_call then whole operator(pg_catalog.->) 'activityType' end;
    content := case when is_call then function operator(pg_catalog.->) 'arguments' else whole operator(pg_catalog.->) 'content' end;

    head := agui_internal.json_member_set(
        body, 'metadata', coalesce(case when metadata is not null then '"\\metadata"' end, given::pg_catalog.text)
    );
    if function is not null then
        head := agui_internal.json_member_set(
            head,
            'function',
            agui_internal.json_member_set(function::pg_catalog.text, 'arguments', case when content is not null then '"\\content"' end)
        );
    elsif content is not null then
        head := agui_internal.json_member_set(head, 'content', '"\\content"');
    end if;
end
$function$;

comment on function agui_internal.fold_open(text, boolean) is
    'A message or a tool call (guarded JSON text) taken apart: what grows (content, or the arguments of a call), metadata to be merged with, the '
    'activityType, and the head, the object with marks in their places.';

revoke execute on function agui_internal.fold_open(text, boolean) from public;
