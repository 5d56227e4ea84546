-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_look(action text, brought bigint)
returns agui_internal.fold_step
language sql
immutable
parallel safe
return (
    null, action, null, null, null, null, null, null, null, null, null, null, null, null, null, brought
)::agui_internal.fold_step;

comment on function agui_internal.fold_look(text, bigint) is
    'The step in which agui_internal.fold_events checks whether the fold is within its limits. '
    'brought: the bytes of events so far.';

revoke execute on function agui_internal.fold_look(text, bigint) from public;
