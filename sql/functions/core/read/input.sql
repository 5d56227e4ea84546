-- The casts change nothing. Tools that read the definition, such as sqlc, take the column types from
-- them.
create or replace view agui.input with (security_invoker = true) as
select
    stored.thread_key,
    stored.run_no,
    coalesce(stored.input, agui_internal.joined_input(stored.thread_key, stored.skeleton, stored.sections)::json)::json as input,
    coalesce(stored.hash, sha256(convert_to(stored.input::text, 'UTF8')))::bytea as hash,
    coalesce(stored.bytes, octet_length(stored.input::text))::int as bytes
from agui.run_input as stored;

comment on view agui.input is
    'The inputs that runs were begun with, beside their events. A row of agui.run_input may be whole '
    'or in parts: this is the text of both.';
comment on column agui.input.thread_key is 'agui.thread_key(scope, thread_id), the key of the rows of the thread.';
comment on column agui.input.run_no is 'Number of the run in its thread.';
comment on column agui.input.input is 'The input (RunAgentInput), byte for byte.';
comment on column agui.input.hash is 'sha256 of its text.';
comment on column agui.input.bytes is 'Size of its text in bytes.';
