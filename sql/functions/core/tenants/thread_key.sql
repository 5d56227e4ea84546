create or replace function agui.thread_key(scope text, thread_id text)
returns uuid
language sql
immutable
strict
parallel safe
-- The text is converted by way of its bytea spelling, which is IMMUTABLE; convert_to is not. The
-- NUL byte, which text cannot contain, distinguishes ('a', 'bc') from ('ab', 'c').
return encode(
    substring(sha256(replace(scope, '\', '\\')::bytea) for 8)
    || substring(sha256(replace(scope, '\', '\\')::bytea || '\x00'::bytea || replace(thread_id, '\', '\\')::bytea) for 8),
    'hex'
)::uuid;

comment on function agui.thread_key(text, text) is
    'Computes the key of the rows of a thread: 64 bits of SHA-256 of the scope, then 64 bits of '
    'SHA-256 of scope and thread id. If two threads have the same key, every call that names the '
    'second one fails with UI012.';

revoke execute on function agui.thread_key(text, text) from public;
