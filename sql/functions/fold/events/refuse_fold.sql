create or replace function agui_internal.refuse_fold(
    thread_key uuid,
    run_nos int[],
    seq bigint,
    setting text,
    allowed bigint,
    reached bigint
)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    run_id text;
begin
    select run.run_id into run_id
    from agui.run as run
    where run.thread_key = refuse_fold.thread_key
        and run.run_no = any (run_nos)
        and run.first_seq <= coalesce(seq, 9223372036854775807)
    order by run.run_no desc
    limit 1;
    raise exception using
        errcode = 'UI023',
        message = format('%s cannot be folded: it exceeds the limit %s',
            coalesce(format('the lineage of run "%s"', run_id), 'the stream of events'), setting),
        detail = format('%s is %s, and it takes %s%s.', setting, allowed, reached, coalesce(' at seq ' || seq, '')),
        hint = 'The events can still be read (agui.events). Raise the limit with agui.set_setting, then let compaction retry with agui.retry.';
end
$function$;

comment on function agui_internal.refuse_fold(uuid, int[], bigint, text, bigint, bigint) is
    'Raises UI023: the event at a seq makes the fold of some runs exceed the limit of a setting.';

revoke execute on function agui_internal.refuse_fold(uuid, int[], bigint, text, bigint, bigint) from public;
