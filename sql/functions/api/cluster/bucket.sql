create or replace function agui.bucket(scope text, thread_id text)
returns int
language sql
immutable
strict
parallel safe
return agui_internal.bucket_of(agui.thread_key(scope, thread_id));

comment on function agui.bucket(text, text) is
    'The bucket of a thread in a cluster, from 0 to 1023: the first 10 bits of the second half of '
    'agui.thread_key. agui.cluster_map() says which node has it. If the scope is pinned ("pgagui cluster '
    'pin"), its threads are in another one, which DETAIL of UI027 names.';

revoke execute on function agui.bucket(text, text) from public;
