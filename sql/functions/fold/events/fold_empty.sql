-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_empty()
returns agui_internal.fold
language sql
immutable
parallel safe
return row(0, '{}', '{}', '{}', '{}', '{}', '[]', null, '{}', 4, 0)::agui_internal.fold;

comment on function agui_internal.fold_empty() is
    'The fold of no events: no messages, state {}.';

revoke execute on function agui_internal.fold_empty() from public;
