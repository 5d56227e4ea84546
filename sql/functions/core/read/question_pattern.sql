create or replace function agui_internal.question_pattern()
returns bytea
language sql
immutable
parallel safe
return convert_to('%' || replace(agui_internal.question_name(), '_', '\_') || '%', 'UTF8');

comment on function agui_internal.question_pattern() is
    'The pattern of the bytes of what may ask. It is inlined.';

revoke execute on function agui_internal.question_pattern() from public;
