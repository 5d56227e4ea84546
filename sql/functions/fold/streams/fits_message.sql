create or replace function agui_internal.fits_message(body text)
returns boolean
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
-- The ids of the thread and of a run come with it, twice.
return octet_length(body) <= 8388608 or agui_internal.fits_frame(body || repeat(' ', 8192));

comment on function agui_internal.fits_message(text) is
    'Whether a message is small enough for every client, in an event of its own.';

revoke execute on function agui_internal.fits_message(text) from public;
