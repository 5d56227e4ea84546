create or replace function agui_internal.session_subject(thread_id text, run_id text)
returns text
language sql
immutable
parallel safe
return case when run_id is null then format('thread "%s"', thread_id) else format('run "%s" of thread "%s"', run_id, thread_id) end;

comment on function agui_internal.session_subject(text, text) is
    'What session state belongs to, for error texts.';

revoke execute on function agui_internal.session_subject(text, text) from public;
