create or replace view agui.held_thread with (security_invoker = true) as
select thread.scope, thread.thread_id, held.reason, held.held_at, held.held_by, held.thread_key
from agui.hold as held
join agui.thread as thread on thread.thread_key = held.thread_key;

comment on view agui.held_thread is 'The threads that are held (agui.set_hold), so that they cannot be erased.';
comment on column agui.held_thread.scope is 'Scope of the thread.';
comment on column agui.held_thread.thread_id is 'The thread.';
comment on column agui.held_thread.reason is 'Why it is held.';
comment on column agui.held_thread.held_at is 'Since when.';
comment on column agui.held_thread.held_by is 'The role that was logged in.';
comment on column agui.held_thread.thread_key is 'Key of the thread.';
