create or replace function agui_internal.status_after(type text, outcome json)
returns text
language sql
immutable
parallel safe
return case type
    when 'RUN_ERROR' then 'failed'
    when 'RUN_FINISHED' then case
        when json_typeof(outcome) is distinct from 'object' then 'finished'
        when outcome ->> 'type' = 'cancelled' then 'cancelled'
        -- The folds skip an interrupt without a list, too.
        when outcome ->> 'type' = 'interrupt' and json_typeof(outcome -> 'interrupts') = 'array' then 'interrupted'
        else 'finished'
    end
    else 'running'
end;

comment on function agui_internal.status_after(text, json) is
    'The status of a run after an event of this type that ends it, with this outcome (guarded; '
    'null: none). Any other type, or null: it is running.';

revoke execute on function agui_internal.status_after(text, json) from public;
