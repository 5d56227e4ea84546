-- What grows or is merged stands apart from the rest, which is the head. Marks in it say where the parts belong: "\\content", "\\metadata"
-- and "\\calls", for the tool calls of a message once one of them changes. Guarded text has no such strings otherwise.
-- agui_internal.fold_settle puts the parts back.
--
-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
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
    whole    constant json := body;
    function constant json := case when is_call and json_typeof(whole -> 'function') = 'object' then whole -> 'function' end;
begin
    metadata := case when json_typeof(whole -> 'metadata') = 'object' then whole -> 'metadata' end;
    activity_type := case when not is_call then whole -> 'activityType' end;
    content := case when is_call then function -> 'arguments' else whole -> 'content' end;

    head := agui_internal.json_member_set(
        body, 'metadata', coalesce(case when metadata is not null then '"\\metadata"' end, (whole -> 'metadata')::text)
    );
    if function is not null then
        head := agui_internal.json_member_set(
            head,
            'function',
            agui_internal.json_member_set(function::text, 'arguments', case when content is not null then '"\\content"' end)
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
