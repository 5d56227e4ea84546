-- A tour of pgagui with nothing but psql. On a database that has the schema (pgagui migrate up):
--
--     psql -X -f examples/tour.sql
--
-- What it prints is in tour.out; a test compares the two.
\set ON_ERROR_STOP off
\set VERBOSITY terse
\pset footer off

\echo == An agent streams its first answer: append what comes, as it comes. The answer is the seq of the last event.
select agui.append('tour', 'run-1', '[
    {"type": "RUN_STARTED", "threadId": "tour", "runId": "run-1", "input": {"messages": [{"id": "q1", "role": "user", "content": "Tell me about Paris"}]}},
    {"type": "TEXT_MESSAGE_START", "messageId": "a1", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "a1", "delta": "Paris is "}
]', after_seq => 0);
select agui.append('tour', 'run-1', '[
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "a1", "delta": "the capital of France."},
    {"type": "TEXT_MESSAGE_END", "messageId": "a1"},
    {"type": "STATE_SNAPSHOT", "snapshot": {"topic": "Paris", "visited": []}},
    {"type": "RUN_FINISHED", "threadId": "tour", "runId": "run-1"}
]', after_seq => 3);

\echo == The answer to the last call got lost? The same call again stores nothing twice.
select agui.append('tour', 'run-1', '[
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "a1", "delta": "the capital of France."},
    {"type": "TEXT_MESSAGE_END", "messageId": "a1"},
    {"type": "STATE_SNAPSHOT", "snapshot": {"topic": "Paris", "visited": []}},
    {"type": "RUN_FINISHED", "threadId": "tour", "runId": "run-1"}
]', after_seq => 3);

\echo == A second run follows the head. A third names an earlier run as its parent: a branch.
select agui.append('tour', 'run-2', '[
    {"type": "RUN_STARTED", "threadId": "tour", "runId": "run-2", "input": {"messages": [{"id": "q2", "role": "user", "content": "What should I see?"}]}},
    {"type": "TEXT_MESSAGE_START", "messageId": "a2"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "a2", "delta": "The Louvre."},
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/visited/-", "value": "Louvre"}]},
    {"type": "TEXT_MESSAGE_END", "messageId": "a2"},
    {"type": "RUN_FINISHED", "threadId": "tour", "runId": "run-2"}
]', after_seq => 0);
select agui.append('tour', 'run-3', '[
    {"type": "RUN_STARTED", "threadId": "tour", "runId": "run-3", "parentRunId": "run-1", "input": {"messages": [{"id": "q3", "role": "user", "content": "Actually, London"}]}},
    {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/topic", "value": "London"}]},
    {"type": "RUN_FINISHED", "threadId": "tour", "runId": "run-3", "outcome": {"type": "interrupt", "interrupts": [{"id": "ask-1", "reason": "confirm", "message": "Change the destination?"}]}}
]', after_seq => 0);

\echo == The tree
select depth, run_id, parent_run_id, status, first_seq, last_seq from agui.lineage('tour');
select * from agui.branches('tour');
select agui.head('tour'), agui.merge_base('tour', 'run-2', 'run-3');
select run_id from agui.children('tour', 'run-1');
select run_id as root from agui.children('tour');

\echo == The log, byte for byte
select seq, run_id, type, left(payload::text, 60) as payload from agui.events('tour', 'run-1', after_seq => 2);
select seq, run_id, type from agui.events('tour', after_seq => 6);
select seq, run_id, type from agui.events('tour', 'run-2', after_seq => 6, lineage => false);
select run_id, count(*) from agui.event where thread_id = 'tour' group by run_id order by run_id;

\echo == What it means: at the head, on the other branch, and back in time
select * from agui.messages('tour');
select agui.state('tour'), agui.state('tour', 'run-2');
select interrupt_id, reason, message, expires_at, expired from agui.interrupts('tour');
select message ->> 'content' as a1_after_seq_3 from agui.messages('tour', at_seq => 3) where message_id = 'a1';
select count(*) as messages_an_hour_ago from agui.messages('tour', at_time => now() - interval '1 hour');
select agui.restore('tour', 'run-2');

\echo == Compaction changes no answer
call agui.compact();
select through_seq, message_nos from agui.snapshot order by run_no;
select agui.restore('tour', 'run-2');
select * from agui.verify('tour');

\echo == The log a page at a time: the tokens of a message or of a tool call are joined, seq stays what it is. The next page begins behind the greatest last_seq.
select agui.append('calls', 'run-1', '[
    {"type": "RUN_STARTED", "input": {"messages": [{"id": "q1", "role": "user", "content": "Weather in Paris and Rome?"}]}},
    {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "weather", "parentMessageId": "a1"},
    {"type": "TOOL_CALL_START", "toolCallId": "c2", "toolCallName": "weather", "parentMessageId": "a1"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{\"city\":"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c2", "delta": "{\"city\": \"Ro"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": " \"Paris\"}"},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    {"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "c1", "content": "sunny"},
    {"type": "ACTIVITY_SNAPSHOT", "messageId": "plan", "activityType": "PLAN", "content": {"tasks": ["Paris", "Rome"]}},
    {"type": "RUN_ERROR", "message": "the weather service is gone"}
]', after_seq => 0);
select seq, last_seq, type, event_count, left(payload::text, 70) as payload from agui.history('calls', max_rows => 5);
select seq, last_seq, type, event_count from agui.history('calls', after_seq => 6, types => '{TOOL_CALL_RESULT,RUN_ERROR}');
select count(*), sum(event_count) as events from agui.history('calls', compressed => false);

\echo == What came of the tool calls, the activities, and the messages as sessions had them before AG-UI
select tool_call_id, name, arguments_json, result, first_seq, last_seq, status from agui.tool_calls('calls');
select message_id, activity_type, content, first_seq, last_seq from agui.activities('calls');
select seq, type, message_id, payload from agui.session_messages('calls');

\echo == An old session becomes runs of a thread
select agui.append('old', run.run_id, run.events, after_seq => 0)
from agui.session_runs('old', '[
    {"event_type": "user", "payload": "hello", "created_at": "2025-05-05T10:00:00Z"},
    {"event_type": "assistant", "payload": "hi"},
    {"event_type": "user", "payload": "bye"}
]') as run;
select seq, run_id, type, payload from agui.session_messages('old');

\echo == What an agent keeps for itself: a document per run and key, in the place of the version that its writer has read. A branch has what its lineage has.
select agui.save_session_state('tour', 'memory', '{"$type": "Memory", "likes": ["art"]}', 'run-1', expected_version => 0);
select agui.save_session_state('tour', 'memory', '{"$type": "Memory", "likes": ["art", "food"]}', 'run-2', expected_version => 1);
select run_id, version, document from agui.load_session_state('tour', 'memory', 'run-2');
select run_id, version, document from agui.load_session_state('tour', 'memory', 'run-3');
select agui.save_session_state('tour', 'memory', '{"$type": "Memory"}', 'run-2', expected_version => 1);
select agui.load_session('tour', 'run-3');

\echo == Checkpoints of a workflow engine, each behind its parent
select agui.save_checkpoint('tour', 'c1', '{"step": 1}'), agui.save_checkpoint('tour', 'c2', '{"step": 2}', parent_id => 'c1');
select agui.save_checkpoint('tour', 'c2b', '{"step": "2b"}', parent_id => 'c1');
select checkpoint_id, parent_id, document from agui.checkpoint_lineage('tour', 'c2b');

\echo == Running agents: their events in one call and one commit. Each call is answered by its number; one that is refused does not keep the others.
select call_no, last_seq, error_code, error from agui.append_many(
    array['live-1', 'live-2', 'live-2'],
    array['run-1', 'run-1', 'run-2'],
    array[
        '[{"type": "RUN_STARTED"}, {"type": "TEXT_MESSAGE_START", "messageId": "a1"}]',
        '[{"type": "RUN_STARTED"}, {"type": "STEP_STARTED", "stepName": "search"}]',
        '[{"type": "RUN_STARTED"}]'
    ]::json[],
    after_seqs => array[0, 0, 0]
)
order by call_no;

\echo == A page that is loaded gets the history, with what is open still open, and the position to follow from. A thread that is not there yet has none.
select run_id, status, running, seq from agui.attach('live-1');
select event from json_array_elements((agui.attach('live-1')).events) as event;
select run_id, status, seq, events from agui.attach('nowhere');

\echo == Whoever watches asks for what came after the seqs that it has, of all its threads at once
select thread_no, run_id, first_seq, n, events from agui.poll(array['live-1', 'live-2'], array[1, 2]);

\echo == Somebody presses stop. The writer learns of it when it says that it is alive, and ends the run.
select agui.request_stop('live-1', reason => 'enough');
select call_no, status, stop_requested_at is not null as shall_stop, stop_reason
from agui.keep_alive(array['live-1', 'live-2'], array['run-1', 'run-1']);
select agui.append('live-1', 'run-1', '[{"type": "TEXT_MESSAGE_END", "messageId": "a1"}, {"type": "RUN_FINISHED"}]', after_seq => 2);
select run_id, status, last_seq, is_stale, stop_reason from agui.status('live-1');

\echo == The writer of the other is gone: after the lease its run is ended in its place. Should it come back, it gets an error.
select name, value, unit from agui.setting order by name;
select agui.set_setting('lease', '0 seconds');
select run_id, status, is_stale from agui.status('live-2');
call agui.reap();
select agui.set_setting('lease', null);
select seq, payload from agui.events('live-2', after_seq => 2);
select agui.append('live-2', 'run-1', '[{"type": "STEP_FINISHED", "stepName": "search"}, {"type": "RUN_FINISHED"}]', after_seq => 2);

\echo == What the log refuses
select agui.append('tour', 'run-1', '[{"type": "CUSTOM", "name": "late"}]');
select agui.append('tour', 'run-4', '[{"type": "RUN_STARTED", "parentRunId": "run-9"}]');
select agui.append('tour', 'run-4', '{"type": "RUN_STARTED"}');
select agui.restore('nowhere');
delete from agui.batch;
