-- 4,096 buckets: 100,000 keys make 25 in each, which are searched as fast as one. The hash has an
-- unpredictable seed. Otherwise ids could be chosen that all fall into one bucket.
create or replace function agui_internal.fold_bucket(key text, seed bigint)
returns int
language sql
immutable
parallel safe
return (hashtextextended(key, seed) & 4095)::int + 1;

comment on function agui_internal.fold_bucket(text, bigint) is
    'The bucket of a key in the index of agui_internal.fold_events.';

revoke execute on function agui_internal.fold_bucket(text, bigint) from public;
