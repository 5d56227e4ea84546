create or replace function agui_internal.checkpoint_subject(thread_id text, checkpoint_id text)
returns text
language sql
immutable
parallel safe
return format('checkpoint "%s" of thread "%s"', left(checkpoint_id, 200), left(thread_id, 200));

comment on function agui_internal.checkpoint_subject(text, text) is
    'How errors name a checkpoint.';

revoke execute on function agui_internal.checkpoint_subject(text, text) from public;
