create or replace function agui.attach_part(
    thread_id  text,
    run_id     text default null,
    at_seq     bigint default null,
    part       int default 1,
    part_bytes int default 8388608,
    customs_of text default 'head',
    scope      text default ''
)
returns agui.attachment_part
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    found record;
begin
    if part is null or part < 1 or part_bytes is null or part_bytes < 1024 then
        raise exception using
            errcode = 'UI008',
            message = format('attach to thread "%s": part is %s and part_bytes %s', thread_id, coalesce(part::text, 'null'), coalesce(part_bytes::text, 'null')),
            hint = 'Parts count from 1. A part has 1024 bytes or more.';
    elsif customs_of is null or customs_of not in ('none', 'head', 'lineage') then
        raise exception using
            errcode = 'UI008',
            message = format('attach to thread "%s": customs_of is %s', thread_id, coalesce('"' || customs_of || '"', 'null')),
            hint = 'Use "none", "head" or "lineage".';
    end if;
    found := agui_internal.attach_at(thread_id, run_id, at_seq, null, 0, 'snapshot', scope, customs_of, part, part_bytes);
    return (found.answer, found.next_part)::agui.attachment_part;
end
$function$;

comment on function agui.attach_part(text, text, bigint, int, int, text, text) is
    'Returns one part of what agui.attach returns in shape snapshot, and the number of the next part '
    '(null: this is the last one), for clients that take no event of any size and servers with little memory. Each part has part_bytes '
    'at most, unless one message or value of the state is larger. Read part 1 first; for the others name '
    'the run and the seq that it returned. A client that applies all parts in their order has exactly the '
    'stored messages and state. If one of them is larger than the official client takes in an event '
    '(10 MiB), the last part ends with RUN_ERROR, whose code is MESSAGE_TOO_LARGE, STATE_TOO_LARGE or '
    'MESSAGE_NOT_SENT. customs_of: the runs whose CUSTOM events the last part repeats, none, head (the run) '
    'or lineage; the last 100 in 1 MiB, and pgagui.left_out counts the others. A question (on_interrupt) '
    'that is answered is not repeated. '
    'Errors: UI001 unknown thread, where a run is given, UI002 unknown run, UI008 invalid arguments, UI012 '
    'another thread has the same key, UI022 a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.attach_part(text, text, bigint, int, int, text, text) from public;
