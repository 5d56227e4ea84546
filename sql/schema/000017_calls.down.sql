drop index agui.projected_call_by_id;
create index projected_call_result on agui.projected_call (thread_key, call_id) where tool is null;
