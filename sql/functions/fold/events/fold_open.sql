-- What grows or is merged is stored separately from the rest, which is the head. Marks in the head
-- show where the parts belong: "\\content", "\\metadata" and, for the tool calls of a message once
-- one of them changes, "\\calls". Guarded text never contains such strings otherwise.
-- agui_internal.fold_settle puts the parts back.
-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
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
    'Takes a message or a tool call (guarded JSON text) apart: what grows (content, or the '
    'arguments of a call), the metadata to merge with, the activityType, and the head, which is '
    'the object with marks in place of these parts.';

revoke execute on function agui_internal.fold_open(text, boolean) from public;
