create or replace function agui_internal.fits_frame(event text)
returns boolean
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
return case
    -- No text has more units than bytes, and none has fewer units than characters.
    when octet_length(event) <= agui_internal.frame_limit() then true
    when length(event) > agui_internal.frame_limit() then false
    else length(event) + regexp_count(event, '[\U00010000-\U0010FFFF]') <= agui_internal.frame_limit()
end;

comment on function agui_internal.fits_frame(text) is
    'Whether an event is small enough for every client (agui_internal.frame_limit).';

revoke execute on function agui_internal.fits_frame(text) from public;
