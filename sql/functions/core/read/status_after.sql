create or replace function agui_internal.status_after(type text, outcome json, asks boolean)
returns text
language sql
immutable
parallel safe
return case type
    when 'RUN_ERROR' then 'failed'
    when 'RUN_FINISHED' then case
        when asks and coalesce(json_typeof(outcome), 'null') = 'null' then 'interrupted'
        when json_typeof(outcome) is distinct from 'object' then 'finished'
        when outcome ->> 'type' = 'cancelled' then 'cancelled'
        -- The folds skip an interrupt without a list, too.
        when outcome ->> 'type' = 'interrupt' and json_typeof(outcome -> 'interrupts') = 'array' then 'interrupted'
        else 'finished'
    end
    else 'running'
end;

comment on function agui_internal.status_after(text, json, boolean) is
    'The status of a run after an event of this type that ends it, with this outcome (guarded; '
    'null: none). asks: the run has asked before it (agui_internal.is_question). Any other type, or null: it is running.';

revoke execute on function agui_internal.status_after(text, json, boolean) from public;
