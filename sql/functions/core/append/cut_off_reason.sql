create or replace function agui_internal.cut_off_reason(event json)
returns text
language sql
immutable
parallel safe
return case
    when event ->> 'type' = 'RUN_ERROR' and event ->> 'code' = 'RUN_CUT_OFF' and starts_with(event ->> 'message', 'The run was cut off: ')
        then nullif(replace(substr(event ->> 'message', length('The run was cut off: ') + 1), '\u005c', '\'), '')
end;

comment on function agui_internal.cut_off_reason(json) is
    'The reason in an event (guarded) that agui_internal.close_run wrote; null: it is another event.';

revoke execute on function agui_internal.cut_off_reason(json) from public;
