-- 4,096 buckets: 100,000 keys are 25 in each, which is as quick to search as one.
create or replace function agui_internal.fold_bucket(key text)
returns int
language sql
immutable
parallel safe
return (hashtext(key) & 4095) + 1;

comment on function agui_internal.fold_bucket(text) is 'The bucket that has a key, in the index of agui_internal.fold_events.';

revoke execute on function agui_internal.fold_bucket(text) from public;
