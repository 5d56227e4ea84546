create or replace function agui_internal.reports_one_call(ending json)
returns boolean
language sql
immutable
parallel safe
return json_typeof(ending #> '{metadata,tanstack}') is not distinct from 'object' or ending #> '{usage,promptTokens}' is not null;

comment on function agui_internal.reports_one_call(json) is
    'Whether an end of a run (guarded) reports one call of the model, not the run so far: TanStack ends each call. Inlined.';

revoke execute on function agui_internal.reports_one_call(json) from public;
