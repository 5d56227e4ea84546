create or replace function agui_internal.fold_chunk_has_content(event json)
returns boolean
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    type constant text := event ->> 'type';
begin
    return exists (
        select
        from json_each(event) as member
        where case
            when member.key in ('type', 'timestamp') then false
            when member.key = 'delta' then json_typeof(member.value) <> 'null'
            when member.key = 'subagentRunId' then json_typeof(member.value) = 'null'
            when type = any (agui_internal.event_types('chunk text')) then member.key not in ('messageId', 'role', 'name')
            when type = any (agui_internal.event_types('chunk tool')) then member.key not in ('toolCallId', 'toolCallName', 'parentMessageId')
            else member.key <> 'messageId'
        end
    );
end
$function$;

comment on function agui_internal.fold_chunk_has_content(json) is
    'Whether a chunk (guarded JSON) that continues an open stream becomes a content event: if it '
    'has a delta, or anything else that the client passes on in an empty one (metadata, a '
    'rawEvent, an unknown member).';

revoke execute on function agui_internal.fold_chunk_has_content(json) from public;
