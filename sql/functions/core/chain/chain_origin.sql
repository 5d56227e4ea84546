create or replace function agui_internal.chain_origin(scope text, thread_id text)
returns bytea
language sql
stable
parallel safe
return sha256('pgagui chain 1'::bytea || agui_internal.chain_text(scope) || agui_internal.chain_text(thread_id));

comment on function agui_internal.chain_origin(text, text) is
    'The value that the first link of a thread covers in place of the hash of a previous link.';

revoke execute on function agui_internal.chain_origin(text, text) from public;
