create or replace function agui_internal.bucket_of(thread_key uuid)
returns int
language sql
immutable
strict
parallel safe
return get_byte(uuid_send(thread_key), 8) * 4 + get_byte(uuid_send(thread_key), 9) / 64;

comment on function agui_internal.bucket_of(uuid) is
    'The bucket of a thread, from 0 to 1023: the first 10 bits of the second half of its key, which '
    'hashes scope and thread id.';

revoke execute on function agui_internal.bucket_of(uuid) from public;
