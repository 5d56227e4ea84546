-- The casts change nothing. Tools that read the definition, such as sqlc, take the column types from
-- them.
create or replace view agui.message with (security_invoker = true) as
select
    version.thread_key,
    version.message_no,
    version.message_id,
    version.role,
    coalesce(version.body, part.body)::json as body
from agui.message_version as version
left join agui.input_part as part
    on part.thread_key = version.thread_key and part.kind = 'message' and part.part_no = version.part_no
where version.part_no is null or part.part_no is not null;

comment on view agui.message is
    'The versions of messages that snapshots refer to. A row of agui.message_version may have its text, '
    'or point to a part of the inputs: this is the text of both.';
comment on column agui.message.thread_key is 'agui.thread_key(scope, thread_id), the key of the rows of the thread.';
comment on column agui.message.message_no is 'Number of the version in its thread.';
comment on column agui.message.message_id is 'id of the message, decoded; null if it has none.';
comment on column agui.message.role is 'role of the message, decoded; null if it has none.';
comment on column agui.message.body is 'The message in the form that AG-UI clients use.';
