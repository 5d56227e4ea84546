create or replace function agui_internal.is_fault(code text)
returns boolean
language sql
immutable
parallel safe
-- Other errors concern the server, the role or the current situation: a lock (55), a deadlock or a
-- conflict (40), a full disk or too many connections (53), a missing privilege or an upgrade in
-- progress (42), a standby (25), a shutdown (57), a connection (08).
return code in ('53200', '57014') or code !~ '^(55|40|53|42|25|57|08|58)';

comment on function agui_internal.is_fault(text) is
    'Whether an error with this SQLSTATE counts as a failed attempt at a run. Counting the others '
    'would put runs into quarantine that are not at fault.';

revoke execute on function agui_internal.is_fault(text) from public;
