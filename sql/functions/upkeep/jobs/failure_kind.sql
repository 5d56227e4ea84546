create or replace function agui_internal.failure_kind(code text)
returns text
language sql
immutable
parallel safe
return case
    -- Each attempt fails alike: a limit, or what the log contains. Only these keep reads from the
    -- run. An error of the reducer in Go has no SQLSTATE. P0001 is raised by a trigger that somebody
    -- else put on a table.
    when code = '' or code ~ '^(UI0(08|11|15|23)|XX001|22|54|P000[^1])' then 'run'
    -- They concern the server, the role or the current situation: a lock (55), a deadlock or a
    -- conflict (40), a full disk or too many connections (53), a missing privilege or an upgrade in
    -- progress (42), a standby (25), a shutdown (57), no connection (08).
    when code ~ '^(55|40|53|42|25|57|08|58)' and code not in ('53200', '57014', '08006') then 'circumstance'
    -- Out of memory, out of time, a connection that was lost, and what is not known: the run may
    -- have caused it, or its neighbours.
    else 'interruption'
end;

comment on function agui_internal.failure_kind(text) is
    'What an error with this SQLSTATE (empty: it has none) says of the run that a job was at. run: '
    'it speaks against the run, so reads are refused too. interruption: it counts as an attempt, as '
    'if the job had been killed; reads go on. circumstance: the attempt does not count.';

revoke execute on function agui_internal.failure_kind(text) from public;
