create or replace function agui_internal.job_lock_id(name text)
returns bigint
language sql
immutable
strict
parallel safe
-- The seed ("agui" in ASCII) keeps the locks of pgagui apart from other users of 64-bit advisory locks in the database.
return hashtextextended('job ' || name, x'61677569'::bigint);

comment on function agui_internal.job_lock_id(text) is
    'The transaction-level advisory lock that a job (compact, repack, …) tries to take, so that a second start while one is at work returns at once.';

revoke execute on function agui_internal.job_lock_id(text) from public;
