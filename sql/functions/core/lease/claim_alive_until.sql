create or replace function agui_internal.claim_alive_until(seen_at timestamptz)
returns timestamptz
language sql
stable
parallel safe
return greatest(seen_at, agui_internal.reachable_since()) + agui_internal.heartbeat_lease();

comment on function agui_internal.claim_alive_until(timestamptz) is
    'The end of the lease of a claim, given claim.seen_at, unless agui.keep_alive renews it. As in '
    'agui_internal.alive_until, the time in which no writer could reach the server does not count.';

revoke execute on function agui_internal.claim_alive_until(timestamptz) from public;
