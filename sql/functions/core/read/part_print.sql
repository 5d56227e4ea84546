-- It is inlined.
create or replace function agui_internal.part_print(beginning bytea, body text)
returns bigint
language sql
stable
parallel safe
return ('x' || encode(substring(sha256(beginning || convert_to(body, 'UTF8')) for 8), 'hex'))::bit(64)::bigint;

comment on function agui_internal.part_print(bytea, text) is
    'The first 64 bits of sha256 of a text with a beginning, by which an equal text is found. The '
    'beginning names the thread and the place. So equal texts of other threads have other prints, and '
    'none is common to many rows.';

revoke execute on function agui_internal.part_print(bytea, text) from public;
