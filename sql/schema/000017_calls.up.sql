-- A call that goes on in a later run is found by its id.
drop index agui.projected_call_result;
create index projected_call_by_id on agui.projected_call (thread_key, call_id);
