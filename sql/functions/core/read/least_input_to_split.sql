create or replace function agui_internal.least_input_to_split()
returns int
language sql
immutable
parallel safe
return 4096;

comment on function agui_internal.least_input_to_split() is
    'The size in bytes of the text of an input from which on it is stored in parts. The rows of the '
    'parts of a smaller one would take as much as they save.';

revoke execute on function agui_internal.least_input_to_split() from public;
