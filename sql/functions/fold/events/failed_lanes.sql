create or replace function agui_internal.failed_lanes()
returns text
language sql
immutable
parallel safe
return '[{"lane":null,"kind":"failed","id":""}]';

comment on function agui_internal.failed_lanes() is
    'The lanes of a fold whose run has failed: none is open, and what follows in the run has no '
    'effect. The fold in Go writes the same.';

revoke execute on function agui_internal.failed_lanes() from public;
