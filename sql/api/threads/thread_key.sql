create or replace function agui.thread_key(scope text, thread_id text)
returns uuid
language sql
immutable
strict
parallel safe
-- Text becomes bytes by way of its bytea spelling, which is IMMUTABLE where convert_to is not; the NUL byte, which no text
-- can hold, keeps ('a', 'bc') apart from ('ab', 'c').
return encode(
    substring(sha256(replace(scope, '\', '\\')::bytea) for 8)
    || substring(sha256(replace(scope, '\', '\\')::bytea || '\x00'::bytea || replace(thread_id, '\', '\\')::bytea) for 8),
    'hex'
)::uuid;

comment on function agui.thread_key(text, text) is
    'The key of a thread''s rows: 64 bits of SHA-256 of the scope, then 64 bits of SHA-256 of scope and '
    'thread id. A thread that has the key of another one is refused with UI012 wherever its id is given.';

revoke execute on function agui.thread_key(text, text) from public;
