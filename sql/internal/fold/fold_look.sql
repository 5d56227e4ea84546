-- Not strict, and without a query in it, so that it is inlined where it is called.
create or replace function agui_internal.fold_look(action text, brought bigint)
returns agui_internal.fold_step
language sql
immutable
parallel safe
return (
    null, action, null, null, null, null, null, null, null, null, null, null, null, null, null, brought
)::agui_internal.fold_step;

comment on function agui_internal.fold_look(text, bigint) is
    'The step at which agui_internal.fold_events looks whether the fold is within its limits, after so many octets of events.';

revoke execute on function agui_internal.fold_look(text, bigint) from public;
