package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// Every kind of damage, one a thread, and what verify says of it. The healthy thread has the runs a ← b, a ← c ← d of 9 events each,
// in three batches of 2, 5 and 2 events, and a snapshot of each run; messages have the versions 1 to 4.
var faults = []struct {
	name  string
	plant string // statements, in which KEY is the key of the thread
	want  []string
	// inSQL is what differs when the fold in SQL says it.
	inSQL map[string]string
}{
	{
		name: "nothing",
	},
	{
		name:  "thread gone",
		plant: `delete from agui.thread where thread_key = KEY`,
		want:  []string{`no row of agui.thread has the key KEY, to which these belong: batches, runs, snapshots, messages, a place in lists`},
	},
	{
		name: "thread without runs",
		plant: `delete from agui.run where thread_key = KEY;
			delete from agui.batch where thread_key = KEY;
			delete from agui.snapshot where thread_key = KEY;
			delete from agui.message_version where thread_key = KEY`,
		want: []string{`the thread has no runs`},
	},
	{
		name:  "thread renamed",
		plant: `update agui.thread set thread_id = 'renamed' where thread_key = KEY`,
		want:  []string{`the thread has the key KEY, that of its scope and id is e3b0c442-98fc-1c14-95fe-317a634817fa`},
	},
	{
		name:  "thread erased",
		plant: `insert into agui.erasure (erased_key, erased_at, runs, events) values (agui_internal.erasure_key(KEY), '2026-01-02 03:04:05+00', 4, 36)`,
		want:  []string{`the thread was erased at 2026-01-02 03:04:05+00, yet there are rows of it`},
	},
	{
		name:  "batch lost",
		plant: `delete from agui.batch where thread_key = KEY and first_seq = 12`,
		want: []string{
			`b: the batch at seq 17 should begin at seq 12: events are missing or double`,
			`b: the run's row counts 9 events, its log has 4`,
			`b: the snapshot is not what the log says: message 2 of 2 differs`,
		},
	},
	{
		name:  "last batch lost",
		plant: `delete from agui.batch where thread_key = KEY and first_seq = 35`,
		want: []string{
			`d: the run should end at seq 36, its last event is at seq 34`,
			`d: the run's row counts 9 events, its log has 7`,
			`d: the run is marked as finished, by its log it is running`,
			`d: the snapshot is not what the log says: the state differs`,
		},
	},
	{
		name:  "batch double",
		plant: `insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events) select thread_key, 13, recorded_at, n, run_no, events from agui.batch where thread_key = KEY and first_seq = 12`,
		want: []string{
			`b: the batch at seq 13 should begin at seq 17: events are missing or double`,
			`b: the batch at seq 17 should begin at seq 18: events are missing or double`,
			`b: the run's row counts 9 events, its log has 14`,
			`b: the snapshot is not what the log says: message 2 of 2 differs`,
		},
	},
	{
		name:  "batch with another count",
		plant: `update agui.batch set n = 6 where thread_key = KEY and first_seq = 30`,
		want: []string{
			`d: the batch at seq 30 holds 5 events, its row says 6`,
			`d: the batch at seq 35 should begin at seq 36: events are missing or double`,
			`d: the run's row counts 9 events, its log has 10`,
		},
	},
	{
		name:  "batch that is no array",
		plant: `update agui.batch set events = '{}' where thread_key = KEY and first_seq = 12`,
		want: []string{
			`b: the batch at seq 12 holds a JSON object in place of an array of events`,
			`b: the snapshot cannot be compared with the log: the batch at seq 12 is not an array of events`,
		},
		inSQL: map[string]string{
			`b: the snapshot cannot be compared with the log: the batch at seq 12 is not an array of events`: `b: the snapshot cannot be compared with the log: cannot call json_populate_recordset on an object`,
		},
	},
	{
		name:  "events that are none",
		plant: `update agui.batch set events = '[{},"RUN_STARTED",[{"type":"RUN_STARTED"}],null,7]' where thread_key = KEY and first_seq = 12`,
		want: []string{
			`b: the event at seq 13 is not a JSON object`,
			`b: the snapshot is not what the log says: message 2 of 2 differs`,
		},
		inSQL: map[string]string{
			`b: the snapshot is not what the log says: message 2 of 2 differs`: `b: the snapshot cannot be compared with the log: argument of json_populate_recordset must be an array of objects`,
		},
	},
	{
		name:  "batch of no run",
		plant: `update agui.batch set run_no = 9 where thread_key = KEY and first_seq = 12`,
		want: []string{
			`the batch at seq 12 belongs to run number 9, which does not exist`,
			`b: the run's row counts 9 events, its log has 4`,
			`b: the snapshot is not what the log says: message 2 of 2 differs`,
		},
	},
	{
		name:  "batch of another run",
		plant: `update agui.batch set run_no = 1 where thread_key = KEY and first_seq = 12`,
		want: []string{
			`a: the run should end at seq 9, its last event is at seq 16`,
			`b: the run's row counts 9 events, its log has 4`,
			`a: the run's row counts 9 events, its log has 14`,
			`b: the snapshot is not what the log says: message 2 of 2 differs`,
			`note: a: the run goes on after the RUN_FINISHED at seq 9 that ended it, to seq 16`,
		},
	},
	{
		name:  "batch recorded too early",
		plant: `update agui.batch set recorded_at = '2026-01-01' where thread_key = KEY and first_seq = 12`,
		want:  []string{`b: the batch at seq 12 was recorded before the one that precedes it`},
	},
	{
		name:  "times missing",
		plant: `update agui.batch set earlier_us = '{5,3}' where thread_key = KEY and first_seq = 3`,
		want:  []string{`a: the batch at seq 3 has the times of 2 events, its row says 5`},
	},
	{
		name:  "times not in order",
		plant: `update agui.batch set earlier_us = '{0,0,0,0,1}' where thread_key = KEY and first_seq = 3`,
		want:  []string{`a: the times of the events in the batch at seq 3 are not in order`},
	},
	{
		name:  "times below zero",
		plant: `update agui.batch set earlier_us = '{0,0,0,0,-1}' where thread_key = KEY and first_seq = 3`,
		want:  []string{`a: the times of the events in the batch at seq 3 are not in order`},
	},
	{
		name:  "time null",
		plant: `update agui.batch set earlier_us = '{3,2,null,1,0}' where thread_key = KEY and first_seq = 3`,
		want:  []string{`a: the times of the events in the batch at seq 3 are not in order`},
	},
	{
		name:  "times before the batch",
		plant: `update agui.batch set earlier_us = '{2000000000,0,0,0,0}' where thread_key = KEY and first_seq = 3`,
		want:  []string{`a: the batch at seq 3 was recorded before the one that precedes it`},
	},
	{
		name:  "event changed",
		plant: `update agui.batch set events = replace(events::text, 'word', 'Word')::json where thread_key = KEY and first_seq = 12`,
		want:  []string{`b: the snapshot is not what the log says: message 2 of 2 differs`},
	},
	{
		name:  "run lost",
		plant: `delete from agui.run where thread_key = KEY and run_no = 3`,
		want: []string{
			`the batch at seq 19 belongs to run number 3, which does not exist`,
			`the batch at seq 21 belongs to run number 3, which does not exist`,
			`the batch at seq 26 belongs to run number 3, which does not exist`,
			`d: the run has the number 4, not 3: runs are missing`,
			`d: the run's parent, run number 3, does not exist`,
			`there is a snapshot of run number 3, which does not exist`,
			`d: the snapshot cannot be compared with the log: the lineage of the run is broken`,
		},
	},
	{
		name:  "run without events",
		plant: `insert into agui.run (thread_key, run_no, parent_no, run_id, status, first_seq, last_seq, started_at, ended_at) values (KEY, 5, 4, 'e', 'finished', 37, 40, '2000-01-01', '2000-01-01')`,
		want:  []string{`e: the run has no events`},
	},
	{
		name:  "run begins elsewhere",
		plant: `update agui.run set first_seq = 12 where thread_key = KEY and run_no = 2`,
		want: []string{
			`b: the run should begin at seq 12, its first event is at seq 10`,
			`b: the snapshot is not what the log says: 2 messages instead of 1`,
		},
	},
	{
		name:  "run ends elsewhere",
		plant: `update agui.run set last_seq = 17 where thread_key = KEY and run_no = 2`,
		want: []string{
			`b: the run should end at seq 17, its last event is at seq 18`,
			`b: the snapshot goes through seq 18, the run from seq 10 to seq 17`,
		},
	},
	{
		name:  "parent ends elsewhere",
		plant: `update agui.run set last_seq = 16 where thread_key = KEY and run_no = 1`,
		want: []string{
			`b: the run began before its parent "a" had ended`,
			`a: the run should end at seq 16, its last event is at seq 9`,
			`b: the snapshot cannot be compared with the log: the lineage of the run is broken`,
		},
	},
	{
		name:  "run does not say where it ends",
		plant: `update agui.run set last_seq = null where thread_key = KEY and run_no = 3`,
		want: []string{
			`d: the run began before its parent "c" had ended`,
			`c: the run has ended, its row does not say where`,
			`c: the snapshot cannot be compared with the log: the lineage of the run is broken`,
			`d: the snapshot cannot be compared with the log: the lineage of the run is broken`,
		},
	},
	{
		name:  "run counts other events",
		plant: `update agui.run set n = 8 where thread_key = KEY and run_no = 2`,
		want:  []string{`b: the run's row counts 8 events, its log has 9`},
	},
	{
		name:  "run has not begun",
		plant: `update agui.batch set events = replace(events::text, 'RUN_STARTED', 'CUSTOM')::json where thread_key = KEY and first_seq = 10`,
		want:  []string{`note: b: the run does not begin with RUN_STARTED`},
	},
	{
		name:  "run named otherwise",
		plant: `update agui.run set run_id = 'x\' where thread_key = KEY and run_no = 2`,
		want:  []string{`x\: the run's RUN_STARTED names another run, "b"`},
	},
	{
		name:  "run begun twice",
		plant: `update agui.batch set events = replace(events::text, 'STATE_SNAPSHOT', 'RUN\u005fSTARTED')::json where thread_key = KEY and first_seq = 17`,
		want: []string{
			`b: the snapshot is not what the log says: the state differs`,
			`note: b: the run has a second RUN_STARTED, at seq 17`,
		},
	},
	{
		name:  "run ended in its middle",
		plant: `update agui.batch set events = replace(events::text, 'STATE_SNAPSHOT', 'RUN_ERROR')::json where thread_key = KEY and first_seq = 17`,
		want: []string{
			`b: the run is marked as finished, by its log it is failed`,
			`b: the run's last end is at seq 17, its row says 18`,
			`b: the snapshot is not what the log says: the state differs`,
			`note: b: the run goes on after the RUN_ERROR at seq 17 that ended it, to seq 18`,
		},
	},
	{
		name:  "run failed in the end",
		plant: `update agui.batch set events = replace(events::text, 'RUN_FINISHED', 'RUN_ERROR')::json where thread_key = KEY and first_seq = 17`,
		want: []string{
			`b: the run is marked as finished, by its log it is failed`,
			`b: the snapshot is not what the log says: the open chunk streams differ`,
		},
	},
	{
		name: "cut off in the middle",
		plant: `update agui.batch set events = replace(replace(events::text, 'RUN_FINISHED', 'CUSTOM'), 'STATE_SNAPSHOT', 'RUN_ERROR')::json where thread_key = KEY and first_seq = 17;
			update agui.run set status = 'cut_off', cut_off_reason = 'gone', end_seq = 17 where thread_key = KEY and run_no = 2`,
		want: []string{
			`b: the run's row says that it was cut off, its log has no RUN_ERROR that ends it`,
			`b: the snapshot is not what the log says: the state differs`,
			`note: b: the run goes on after the RUN_ERROR at seq 17 that ended it, to seq 18`,
		},
	},
	{
		name:  "another thread is named",
		plant: `update agui.batch set events = replace(events::text, '"RUN_STARTED"', '"RUN_STARTED","threadId":"\\"')::json where thread_key = KEY and first_seq = 10`,
		want:  []string{`note: b: the RUN_STARTED at seq 10 names another thread, "\u005c"`},
	},
	{
		name:  "input added",
		plant: `insert into agui.run_input (thread_key, run_no, input) values (KEY, 2, '{"messages":[{"id":"u","role":"user","content":"x"}]}')`,
		want:  []string{`b: the snapshot is not what the log says: 2 messages instead of 3`},
	},
	{
		name:  "input that is no object",
		plant: `insert into agui.run_input (thread_key, run_no, input) values (KEY, 4, '[]')`,
		want:  []string{`d: the input beside the events of the run is a JSON array, not an object`},
	},
	{
		name: "input of which a part is missing",
		plant: splitInput + `
			delete from agui.input_part where thread_key = KEY and part_no = 2`,
		want: []string{`e: the input beside the events of the run lacks a part, number 2 of the kind message`},
	},
	{
		name: "input of which a part is changed",
		plant: splitInput + `
			update agui.input_part set body = replace(body::text, 'x', 'y')::json where thread_key = KEY and part_no = 1`,
		want: []string{`e: the input beside the events of the run does not have its hash`},
	},
	{
		name: "input that is changed",
		plant: splitInput + `
			update agui.run_input set input = '{}', skeleton = null, sections = null, part_bytes = null where thread_key = KEY and run_no = 5`,
		want: []string{`e: the input beside the events of the run does not have its hash`},
	},
	{
		name: "input that is neither whole nor in parts",
		plant: splitInput + `
			update agui.run_input set sections = null where thread_key = KEY and run_no = 5`,
		want: []string{`e: the row of the input beside the events of the run is neither whole nor in parts`},
	},
	{
		name: "part of an input has another id than its text",
		plant: splitInput + `
			update agui.input_part set message_id = '3' where thread_key = KEY and part_no = 2`,
		want: []string{`the part number 2 of the kind message of inputs does not have the size and the id of its text`},
	},
	{
		name: "another input is named",
		plant: `update agui.batch set events = replace(events::text, '"RUN_STARTED"', '"RUN_STARTED","input":{"messages":[],"x":1}')::json where thread_key = KEY and first_seq = 10;
			insert into agui.run_input (thread_key, run_no, input) values (KEY, 2, '{"messages":[{"id":"u","role":"user","content":"x"}]}')`,
		want: []string{`note: b: the RUN_STARTED at seq 10 carries another input than is stored beside the events: its own counts`},
	},
	{
		name: "same input is named",
		plant: `update agui.batch set events = replace(events::text, '"RUN_STARTED"', '"RUN_STARTED","input":{"messages":[],"x":"\u0000\\"}')::json where thread_key = KEY and first_seq = 10;
			insert into agui.run_input (thread_key, run_no, input) values (KEY, 2, '{"x":"\u0000\u005c", "messages":[] }')`,
	},
	{
		name:  "parent given, and another named",
		plant: `update agui.run set parent_given = true, parent_no = null where thread_key = KEY and run_no = 3`,
		want: []string{
			`c: the snapshot is not what the log says: 2 messages instead of 1`,
			`d: the snapshot is not what the log says: 3 messages instead of 2`,
			`note: c: the RUN_STARTED at seq 19 names the parent "a", the run is a root`,
		},
	},
	{
		name:  "run without an end",
		plant: `update agui.batch set events = replace(events::text, 'RUN_FINISHED', 'CUSTOM')::json where thread_key = KEY and first_seq = 17`,
		want:  []string{`b: the run is marked as finished, by its log it is running`},
	},
	{
		name:  "status",
		plant: `update agui.run set status = 'failed' where thread_key = KEY and run_no = 2`,
		want:  []string{`b: the run is marked as failed, by its log it is finished`},
	},
	{
		name:  "place of the end",
		plant: `update agui.run set end_seq = 17 where thread_key = KEY and run_no = 2`,
		want:  []string{`b: the run's last end is at seq 18, its row says 17`},
	},
	{
		name:  "cut off",
		plant: `update agui.run set cut_off_reason = 'no sign of life' where thread_key = KEY and run_no = 2`,
		want:  []string{`b: the run's row says that it was cut off, its log has no RUN_ERROR that ends it`},
	},
	{
		name: "cut off in progress",
		plant: `update agui.run set status = 'running', last_seq = null, ended_at = null, cut_off_reason = 'no sign of life' where thread_key = KEY and run_no = 4;
			delete from agui.batch where thread_key = KEY and first_seq = 35;
			delete from agui.snapshot where thread_key = KEY and run_no = 4;
			delete from agui.message_version where thread_key = KEY and message_no = 4`,
		want: []string{
			`d: the run's row counts 9 events, its log has 7`,
			`d: the run's row says that it was cut off, its log has no RUN_ERROR that ends it`,
		},
	},
	{
		name:  "status running",
		plant: `update agui.run set status = 'running' where thread_key = KEY and run_no = 2`,
		want: []string{
			`b: the run is in progress, its row says that it ended at seq 18`,
			`b: the run is marked as running, by its log it is finished`,
		},
	},
	{
		name:  "status unknown",
		plant: `update agui.run set status = 'lost' where thread_key = KEY and run_no = 2`,
		want: []string{
			`b: the run has an unknown status, "lost"`,
			`b: the run is marked as lost, by its log it is finished`,
		},
	},
	{
		name: "run numbers",
		plant: `update agui.run set run_no = 5 where thread_key = KEY and run_no = 4;
			update agui.batch set run_no = 5 where thread_key = KEY and run_no = 4;
			update agui.snapshot set run_no = 5 where thread_key = KEY and run_no = 4`,
		want: []string{
			`d: the run has the number 5, not 4: runs are missing`,
			`d: the run's RUN_STARTED names no parent, so it follows the run before it, its row says "c"`,
		},
	},
	{
		name:  "run id twice",
		plant: `update agui.run set run_id = 'a' where thread_key = KEY and run_no = 2`,
		want: []string{
			`a: run number 1 has the id of another run of the thread`,
			`a: run number 2 has the id of another run of the thread`,
			`a: the run's RUN_STARTED names another run, "b"`,
		},
	},
	{
		name: "runs out of order",
		plant: `update agui.run set run_no = run_no + 10 where thread_key = KEY and run_no in (2, 3);
			update agui.run set run_no = 15 - run_no where thread_key = KEY and run_no in (12, 13);
			update agui.batch set run_no = run_no + 10 where thread_key = KEY and run_no in (2, 3);
			update agui.batch set run_no = 15 - run_no where thread_key = KEY and run_no in (12, 13);
			update agui.snapshot set run_no = run_no + 10 where thread_key = KEY and run_no in (2, 3);
			update agui.snapshot set run_no = 15 - run_no where thread_key = KEY and run_no in (12, 13);
			update agui.run set parent_no = 2 where thread_key = KEY and run_no = 4`,
		want: []string{
			`b: the run begins at seq 10, which is not after the run "c" began`,
			`d: the run's RUN_STARTED names no parent, so it follows the run before it, its row says "c"`,
		},
	},
	{
		name:  "parent lost",
		plant: `update agui.run set parent_no = 9 where thread_key = KEY and run_no = 3`,
		want: []string{
			`c: the run's parent, run number 9, does not exist`,
			`c: the run's RUN_STARTED names the parent "a", its row none`,
			`c: the snapshot cannot be compared with the log: the lineage of the run is broken`,
			`d: the snapshot cannot be compared with the log: the lineage of the run is broken`,
		},
	},
	{
		name:  "no parent",
		plant: `update agui.run set parent_no = null where thread_key = KEY and run_no = 3`,
		want: []string{
			`c: the run's RUN_STARTED names the parent "a", its row none`,
			`c: the snapshot is not what the log says: 2 messages instead of 1`,
			`d: the snapshot is not what the log says: 3 messages instead of 2`,
		},
	},
	{
		name:  "another parent",
		plant: `update agui.run set parent_no = 2 where thread_key = KEY and run_no = 3`,
		want: []string{
			`c: the run's RUN_STARTED names the parent "a", its row "b"`,
			`c: the snapshot is not what the log says: 2 messages instead of 3`,
			`d: the snapshot is not what the log says: 3 messages instead of 4`,
		},
	},
	{
		name:  "another parent than the run before",
		plant: `update agui.run set parent_no = 2 where thread_key = KEY and run_no = 4`,
		want: []string{
			`d: the run's RUN_STARTED names no parent, so it follows the run before it, its row says "b"`,
			`d: the snapshot is not what the log says: message 2 of 3 differs`,
		},
	},
	{
		name:  "parent in progress",
		plant: `update agui.run set last_seq = 30 where thread_key = KEY and run_no = 1`,
		want: []string{
			`b: the run began before its parent "a" had ended`,
			`c: the run began before its parent "a" had ended`,
			`a: the run should end at seq 30, its last event is at seq 9`,
			`b: the snapshot cannot be compared with the log: the lineage of the run is broken`,
			`c: the snapshot cannot be compared with the log: the lineage of the run is broken`,
			`d: the snapshot cannot be compared with the log: the lineage of the run is broken`,
		},
	},
	{
		name:  "parent that is younger",
		plant: `update agui.run set parent_no = 4 where thread_key = KEY and run_no = 2`,
		want: []string{
			`b: the run's parent "d" is not older than the run`,
			`b: the run's RUN_STARTED names the parent "a", its row "d"`,
			`b: the snapshot cannot be compared with the log: the lineage of the run is broken`,
		},
	},
	{
		name:  "circle",
		plant: `update agui.run set parent_no = 4 where thread_key = KEY and run_no = 1`,
		want: []string{
			`a: the run is its own ancestor: from its parent "d" the tree leads back to it`,
			`a: the run's RUN_STARTED names no parent, so it is a root, its row says "d"`,
			`a: the snapshot cannot be compared with the log: the lineage of the run is broken`,
			`b: the snapshot cannot be compared with the log: the lineage of the run is broken`,
			`c: the snapshot cannot be compared with the log: the lineage of the run is broken`,
			`d: the snapshot cannot be compared with the log: the lineage of the run is broken`,
		},
	},
	{
		name:  "circle of one",
		plant: `update agui.run set parent_no = 3 where thread_key = KEY and run_no = 3`,
		want: []string{
			`c: the run is its own ancestor: from its parent "c" the tree leads back to it`,
			`c: the run's RUN_STARTED names the parent "a", its row "c"`,
			`c: the snapshot cannot be compared with the log: the lineage of the run is broken`,
			`d: the snapshot cannot be compared with the log: the lineage of the run is broken`,
		},
	},
	{
		name:  "state",
		plant: `update agui.snapshot set state = '{"run":"x"}' where thread_key = KEY and run_no = 3`,
		want:  []string{`c: the snapshot is not what the log says: the state differs`},
	},
	{
		name:  "spelling of the state",
		plant: `update agui.snapshot set state = ' { "run" : "\u0063" }' where thread_key = KEY and run_no = 3`,
	},
	{
		name:  "state that is scalar",
		plant: `update agui.snapshot set state = 'null', interrupts = '5', lanes = '5' where thread_key = KEY and run_no = 3`,
		want:  []string{`c: the snapshot is not what the log says: the state differs`},
	},
	{
		name:  "interrupts",
		plant: `update agui.snapshot set interrupts = '[{}]' where thread_key = KEY and run_no = 3`,
		want:  []string{`c: the snapshot is not what the log says: the interrupts differ`},
	},
	{
		name:  "lanes",
		plant: `update agui.snapshot set lanes = '[{"lane":null,"kind":"text","id":"c"}]' where thread_key = KEY and run_no = 3`,
		want:  []string{`c: the snapshot is not what the log says: the open chunk streams differ`},
	},
	{
		name:  "message changed",
		plant: `update agui.message_version set body = replace(body::text, 'word', 'Word')::json where thread_key = KEY and message_no = 3`,
		want: []string{
			`c: the snapshot is not what the log says: message 2 of 2 differs`,
			`d: the snapshot is not what the log says: message 2 of 3 differs`,
		},
	},
	{
		name:  "message that is no object",
		plant: `update agui.message_version set body = '[]' where thread_key = KEY and message_no = 3`,
		want: []string{
			`message version 3 has another id or role than its body`,
			`c: the snapshot is not what the log says: message 2 of 2 differs`,
			`d: the snapshot is not what the log says: message 2 of 3 differs`,
		},
	},
	{
		name:  "message labelled otherwise",
		plant: `update agui.message_version set role = 'user' where thread_key = KEY and message_no = 3`,
		want:  []string{`message version 3 has another id or role than its body`},
	},
	{
		name:  "message that points to nothing",
		plant: `update agui.message_version set body = null, part_no = 9 where thread_key = KEY and message_no = 3`,
		want: []string{
			`c: the snapshot points to message versions that do not exist: {[3,4)}`,
			`d: the snapshot points to message versions that do not exist: {[3,4)}`,
			`message version 3 points to a part of inputs that does not exist, number 9`,
			`c: the snapshot is not what the log says: 1 messages instead of 2`,
			`d: the snapshot is not what the log says: 2 messages instead of 3`,
		},
	},
	{
		name:  "message lost",
		plant: `delete from agui.message_version where thread_key = KEY and message_no in (1, 3)`,
		want: []string{
			`a: the snapshot points to message versions that do not exist: {[1,2)}`,
			`b: the snapshot points to message versions that do not exist: {[1,2)}`,
			`c: the snapshot points to message versions that do not exist: {[1,2),[3,4)}`,
			`d: the snapshot points to message versions that do not exist: {[1,2),[3,4)}`,
			`a: the snapshot is not what the log says: 0 messages instead of 1`,
			`b: the snapshot is not what the log says: 1 messages instead of 2`,
			`c: the snapshot is not what the log says: 0 messages instead of 2`,
			`d: the snapshot is not what the log says: 1 messages instead of 3`,
		},
	},
	{
		name:  "messages leaked",
		plant: `insert into agui.message_version (thread_key, message_no, body) values (KEY, 7, '{}'), (KEY, 8, '{}'), (KEY, 11, '{}')`,
		want:  []string{`no snapshot holds the message versions {[7,9),[11,12)}`},
	},
	{
		name:  "messages swapped",
		plant: `update agui.snapshot set message_nos = '{"[3,4)","[1,2)"}' where thread_key = KEY and run_no = 3`,
		want:  []string{`c: the snapshot is not what the log says: message 1 of 2 differs`},
	},
	{
		name:  "messages doubled",
		plant: `update agui.snapshot set message_nos = '{"[1,2)","[1,2)"}' where thread_key = KEY and run_no = 3`,
		want:  []string{`c: the snapshot is not what the log says: message 2 of 2 differs`},
	},
	{
		name:  "message of another branch",
		plant: `update agui.snapshot set message_nos = '{"[1,3)"}' where thread_key = KEY and run_no = 3`,
		want:  []string{`c: the snapshot is not what the log says: message 2 of 2 differs`},
	},
	{
		name:  "no messages",
		plant: `update agui.snapshot set message_nos = '{}' where thread_key = KEY and run_no = 4`,
		want: []string{
			`no snapshot holds the message versions {[4,5)}`,
			`d: the snapshot is not what the log says: 0 messages instead of 3`,
		},
	},
	{
		name:  "all messages there ever were",
		plant: `update agui.snapshot set message_nos = '{"[1,2000000000)"}' where thread_key = KEY and run_no = 4`,
		want: []string{
			`d: the snapshot points to message versions that do not exist: {[5,2000000000)}`,
			`d: the snapshot is not what the log says: 4 messages instead of 3`,
		},
	},
	{
		name:  "snapshot ahead",
		plant: `update agui.snapshot set through_seq = 28 where thread_key = KEY and run_no = 3`,
		want:  []string{`c: the snapshot goes through seq 28, the run from seq 19 to seq 27`},
	},
	{
		name:  "snapshot behind",
		plant: `update agui.snapshot set through_seq = 18 where thread_key = KEY and run_no = 3`,
		want:  []string{`c: the snapshot goes through seq 18, the run from seq 19 to seq 27`},
	},
	{
		name:  "snapshot of the middle",
		plant: `update agui.snapshot set through_seq = 22 where thread_key = KEY and run_no = 3`,
		want:  []string{`c: the snapshot is not what the log says: message 2 of 2 differs`},
	},
	{
		name:  "snapshot of no run",
		plant: `update agui.snapshot set run_no = 9 where thread_key = KEY and run_no = 4`,
		want:  []string{`there is a snapshot of run number 9, which does not exist`},
	},
	{
		name:  "missing in lists",
		plant: `delete from agui.thread_activity where thread_key = KEY`,
		want:  []string{`the thread is missing in lists: it has no row in agui.thread_activity`},
	},
	{
		name:  "behind in lists",
		plant: `update agui.thread_activity set active_at = '2000-01-02 03:04:05+00' where thread_key = KEY`,
		want:  []string{`in lists the thread was last active at 2000-01-02 03:04:05+00, a run of it began or ended later`},
	},
	{
		name:  "in the lists of another scope",
		plant: `update agui.thread_activity set scope_key = 7 where thread_key = KEY`,
		want:  []string{`the thread is in the lists of another scope`},
	},
	{
		name: "saved as it should be",
		plant: `
			select agui.save_session_state('saved as it should be', 'k', '1', run_id, overwrite => true), agui.save_checkpoint('saved as it should be', run_id, '{}')
			from agui.run where thread_key = KEY order by run_no;
			select agui.remove_session_state('saved as it should be', 'k', 'd', overwrite => true)`,
	},
	{
		name: "saved in no thread",
		plant: `
			select agui.save_session_state('saved in no thread', 'k', '1'), agui.save_checkpoint('saved in no thread', 'c', '{}');
			delete from agui.snapshot where thread_key = KEY;
			delete from agui.message_version where thread_key = KEY;
			delete from agui.batch where thread_key = KEY;
			delete from agui.run where thread_key = KEY;
			delete from agui.thread where thread_key = KEY`,
		want: []string{`no row of agui.thread has the key KEY, to which these belong: session state, checkpoints, a place in lists`},
	},
	{
		name: "saved and nothing appended",
		plant: `
			select agui.save_session_state('saved and nothing appended', 'k', '1'), agui.save_checkpoint('saved and nothing appended', 'c', '{}');
			delete from agui.snapshot where thread_key = KEY;
			delete from agui.message_version where thread_key = KEY;
			delete from agui.batch where thread_key = KEY;
			delete from agui.run where thread_key = KEY`,
	},
	{
		name: "session state damaged",
		plant: `
			insert into agui.session_key (thread_key, key, last_version, saved_at)
			values (KEY, 'behind', 1, now()), (KEY, 'lost', 2, now()), (KEY, 'shorter', 3, now());
			insert into agui.session_state (thread_key, run_no, key, version, document)
			values (KEY, 0, 'behind', 2, '1'), (KEY, 0, 'shorter', 2, '1'), (KEY, 0, 'unnumbered', 1, '1'), (KEY, 9, 'shorter', 1, '1')`,
		want: []string{
			`session state of the key "behind" has version 2, beyond the last number given, 1`,
			`version 2 of session state of the key "lost" is missing, the newest one`,
			`version 3 of session state of the key "shorter" is missing, the newest one is 2`,
			`session state of the key "unnumbered" is not numbered`,
			`version 1 of session state of the key "shorter" belongs to run number 9, which does not exist`,
		},
	},
	{
		name: "checkpoints damaged",
		plant: `
			insert into agui.checkpoint (thread_key, checkpoint_no, namespace, checkpoint_id, parent_no, document)
			values (KEY, 1, '', 'a', null, '1'), (KEY, 3, '', 'b', 2, '1'), (KEY, 4, 'n', 'c', 1, '1')`,
		want: []string{
			`checkpoint "b" has the number 3, not 2: checkpoints are missing`,
			`the parent of checkpoint "b", number 2, does not exist in its namespace`,
			`the parent of checkpoint "c", number 1, does not exist in its namespace`,
		},
	},
	{
		name: "channels damaged",
		plant: `
			insert into agui.checkpoint (thread_key, checkpoint_no, namespace, checkpoint_id, document, metadata) values (KEY, 1, '', 'a', '{}', '{}');
			insert into agui.channel (thread_key, channel_no, namespace, name, parts) values (KEY, 1, '', 'list', 3), (KEY, 2, '', 'other', 0);
			insert into agui.channel_part (thread_key, channel_no, part_no, print, body) values (KEY, 1, 1, 1, '1'), (KEY, 1, 3, 3, '3');
			insert into agui.channel_value (thread_key, channel_no, version, part_nos) values (KEY, 1, '7', '{"[1,3]"}'), (KEY, 2, '8', '{"[1,1]"}'), (KEY, 5, '9', '{"[1,1]"}');
			insert into agui.checkpoint_write (thread_key, checkpoint_no, task_id, place, task_path, channel_no, body) values (KEY, 1, 'task', 0, '', 6, '1')`,
		want: []string{
			`channel "list" has 2 parts up to number 3, not 3`,
			`version 9 belongs to channel number 5, which does not exist`,
			`what task "task" wrote after checkpoint number 1 belongs to channel number 6, which does not exist`,
			`version 8 of channel "other" refers to parts beyond number 0`,
		},
	},
}

// splitInput appends a run with an input in parts.
const splitInput = `
	select agui.append(thread_id, 'e', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', 0,
		('{"messages":[{"id":"1","role":"user","content":"' || repeat('x', 9000) || '"},{"id":"2","role":"user","content":"z"}]}')::json)
	from agui.thread where thread_key = KEY;
	select agui_internal.split_thread_inputs(KEY, '{5}');`

// plantFaults makes the threads of a list of faults and damages them.
func plantFaults(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := testdb.Pool(t)
	ctx := context.Background()
	for _, fault := range faults {
		appendHealthyThread(t, pool, fault.name)
	}
	// What keeps such damage out: bad restores and meddling go without it.
	testdb.Exec(t, pool, `
		alter table agui.thread disable trigger user;
		alter table agui.run disable trigger user;
		alter table agui.batch disable trigger user;
		alter table agui.run_input disable trigger user, drop constraint run_input_is_whole_or_in_parts;
		alter table agui.input_part disable trigger user;
		alter table agui.snapshot drop constraint snapshot_thread_key_run_no_fkey;
		alter table agui.message_version drop constraint message_version_thread_key_fkey;
		alter table agui.thread_activity drop constraint thread_activity_thread_key_fkey;
		alter table agui.session_key drop constraint session_key_thread_key_fkey;
		alter table agui.session_state drop constraint session_state_thread_key_key_fkey;
		alter table agui.checkpoint drop constraint checkpoint_thread_key_fkey;
		alter table agui.channel_value drop constraint channel_value_thread_key_channel_no_fkey;
		alter table agui.run
			drop constraint run_thread_key_fkey, drop constraint run_thread_key_parent_no_fkey, drop constraint run_run_id_thread_key_key,
			drop constraint run_parent_is_older, drop constraint run_status_is_known, drop constraint run_has_bounds_once_ended`)
	for _, fault := range faults {
		key := fmt.Sprintf("agui.thread_key('', '%s')", fault.name)
		if _, err := pool.Exec(ctx, strings.ReplaceAll(fault.plant, "KEY", key)); err != nil {
			t.Fatalf("%s: %v", fault.name, err)
		}
	}
	return pool
}

func appendHealthyThread(t *testing.T, pool *pgxpool.Pool, thread string) {
	t.Helper()
	store := pgagui.New(pool, nil)
	for _, run := range []struct{ id, parent string }{{"a", ""}, {"b", `"a"`}, {"c", `"a"`}, {"d", ""}} {
		opening := fmt.Sprintf(`{"type":"RUN_STARTED","runId":"%s"}`, run.id)
		if run.parent != "" {
			opening = fmt.Sprintf(`{"type":"RUN_STARTED","runId":"%s","parentRunId":%s}`, run.id, run.parent)
		}
		token := json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"%s","delta":"word "}`, run.id))
		for _, batch := range [][]json.RawMessage{
			{json.RawMessage(opening), json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_START","messageId":"%s","role":"assistant"}`, run.id))},
			slices.Repeat([]json.RawMessage{token}, 5),
			{json.RawMessage(fmt.Sprintf(`{"type":"STATE_SNAPSHOT","snapshot":{"run":"%s"}}`, run.id)), json.RawMessage(`{"type":"RUN_FINISHED"}`)},
		} {
			mustAppend(t, store, thread, run.id, batch)
		}
	}
	// In calls of one run, so that each run keeps its snapshot.
	for range 4 {
		testdb.Exec(t, pool, `call agui.compact(1)`)
	}
}

// verifyInSQL is what agui.verify says of a thread, notes last.
func verifyInSQL(t *testing.T, pool *pgxpool.Pool, thread string) []string {
	t.Helper()
	return testdb.List[string](t, pool, `
		select concat(case severity when 'note' then 'note: ' end, run_id || ': ', problem)
		from agui.verify($1) with ordinality as found (run_id, problem, severity, position)
		order by severity, position`, thread)
}

// verifyThreads runs the job and returns what it says of each thread, by key.
func verifyThreads(t *testing.T, pool *pgxpool.Pool, options jobs.VerifyOptions) map[string]jobs.VerifiedThread {
	t.Helper()
	reports := map[string]jobs.VerifiedThread{}
	options.Report = func(thread jobs.VerifiedThread) { reports[thread.ThreadKey] = thread }
	done := must.Have(jobs.Verify(context.Background(), pool, options))(t)
	if done.Threads != len(reports) {
		t.Errorf("%d threads were checked, %d reported", done.Threads, len(reports))
	}
	return reports
}

// described are problems as verifyInSQL gives them.
func described(problems []jobs.ThreadProblem) (lines []string) {
	for _, problem := range problems {
		line := problem.Problem.Problem
		if problem.RunID != "" {
			line = problem.RunID + ": " + line
		}
		lines = append(lines, line)
	}
	return lines
}

// describedAll is the same, with the notes.
func describedAll(thread jobs.VerifiedThread) []string {
	lines := described(thread.Problems)
	for _, note := range thread.Notes {
		lines = append(lines, "note: "+note.RunID+": "+note.Problem)
	}
	return lines
}

func keyOf(t *testing.T, pool *pgxpool.Pool, thread string) string {
	t.Helper()
	return testdb.Ask[string](t, pool, `select agui.thread_key('', $1)::text`, thread)
}

// The function in SQL, the job in Go and the job with the fold in SQL find the same, and say it in the same words.
func TestVerifyNamesEveryKindOfDamage(t *testing.T) {
	t.Parallel()
	pool := plantFaults(t)
	inGo := verifyThreads(t, pool, jobs.VerifyOptions{Workers: 3})
	inSQL := verifyThreads(t, pool, jobs.VerifyOptions{Workers: 3, InSQL: true})
	if len(inGo) != len(faults) {
		t.Errorf("%d threads were checked, want all %d", len(inGo), len(faults))
	}
	for _, fault := range faults {
		key := keyOf(t, pool, fault.name)
		var want, wantInSQL []string
		for _, problem := range fault.want {
			want = append(want, strings.ReplaceAll(problem, "KEY", key))
			if other, differs := fault.inSQL[problem]; differs {
				problem = other
			}
			wantInSQL = append(wantInSQL, strings.ReplaceAll(problem, "KEY", key))
		}
		if got := describedAll(inGo[key]); !slices.Equal(got, want) {
			t.Errorf("%s: the job says\n%s\nwant\n%s", fault.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got := describedAll(inSQL[key]); !slices.Equal(got, wantInSQL) {
			t.Errorf("%s: the job with the fold in SQL says\n%s\nwant\n%s", fault.name, strings.Join(got, "\n"), strings.Join(wantInSQL, "\n"))
		}
		thread := fault.name
		if inGo[key].ThreadID != "" {
			thread = inGo[key].ThreadID
		}
		if got := verifyInSQL(t, pool, thread); !slices.Equal(got, wantInSQL) {
			t.Errorf("%s: agui.verify says\n%s\nwant\n%s", fault.name, strings.Join(got, "\n"), strings.Join(wantInSQL, "\n"))
		}
	}
}

// Where the tree leads in a circle, reads come to an end: they go from a run only to an older one.
func TestReadsOfACircleEnd(t *testing.T) {
	t.Parallel()
	pool := plantFaults(t)
	for thread, lineage := range map[string]string{"circle": "a c d", "circle of one": "c d"} {
		var got string
		err := pool.QueryRow(context.Background(), `select string_agg(run_id, ' ' order by depth) from agui.lineage($1)`, thread).Scan(&got)
		if err != nil || got != lineage {
			t.Errorf("%s: the lineage is %q, error %v, want %q", thread, got, err, lineage)
		}
		if _, err := pool.Exec(context.Background(), `select agui.restore($1), (select count(*) from agui.events($1))`, thread); err != nil {
			t.Errorf("%s: %v", thread, err)
		}
	}
}

// Snapshots of a thread whose log is sound are put right, everything else stays as it is.
func TestRepairMakesSnapshotsAgainAndLeavesTheLog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := plantFaults(t)
	digest := func(query string) string {
		t.Helper()
		return testdb.Ask[string](t, pool, query)
	}
	const log = `select md5(string_agg(concat(to_jsonb(run) - 'log_bytes' - 'n', batches.rows), '' order by run.thread_key, run.run_no)) from agui.run
		left join lateral (select string_agg(batch::text, '' order by first_seq) as rows from agui.batch
			where batch.thread_key = run.thread_key and batch.run_no = run.run_no) as batches on true`
	healthy := digest(`select agui.restore('nothing')::text`)
	snapshotsOf := func(key string) string {
		return digest(`select md5(coalesce(string_agg(snapshot::text, '' order by run_no), '')
			|| (select coalesce(string_agg(message::text, '' order by message_no), '') from agui.message where thread_key = '` + key + `'))
			from agui.snapshot where thread_key = '` + key + `'`)
	}

	logBefore := digest(log)
	before := verifyThreads(t, pool, jobs.VerifyOptions{})
	snapshots := map[string]string{}
	for key := range before {
		snapshots[key] = snapshotsOf(key)
	}
	after := verifyThreads(t, pool, jobs.VerifyOptions{Repair: true, Workers: 2})
	if digest(log) != logBefore {
		t.Error("the repair changed the log")
	}
	repaired := 0
	for _, fault := range faults {
		key := keyOf(t, pool, fault.name)
		isRepairable := len(before[key].Problems) > 0 && before[key].Problems[0].Repairable
		if !isRepairable {
			if !slices.Equal(after[key].Problems, before[key].Problems) || len(after[key].Repaired) > 0 || snapshotsOf(key) != snapshots[key] {
				t.Errorf("%s: the repair changed a thread that it should have left alone: %+v", fault.name, after[key])
			}
			continue
		}
		repaired++
		if len(after[key].Problems) > 0 || !slices.Equal(after[key].Repaired, before[key].Problems) {
			t.Errorf("%s: repaired are %q, problems %q, before it were %q",
				fault.name, described(after[key].Repaired), described(after[key].Problems), described(before[key].Problems))
		}
		got := slices.DeleteFunc(verifyInSQL(t, pool, fault.name), func(problem string) bool { return strings.HasPrefix(problem, "note: ") })
		if len(got) > 0 {
			t.Errorf("%s: afterwards agui.verify says %q", fault.name, got)
		}
		// The threads differ in their ids alone, and where the log was changed.
		restored := digest(fmt.Sprintf(`select agui.restore('%s')::text`, fault.name))
		if got := strings.Replace(restored, fault.name, "nothing", 1); got != healthy &&
			fault.name != "event changed" && fault.name != "parent given, and another named" {
			t.Errorf("%s: restores as\n%s\nwant\n%s", fault.name, got, healthy)
		}
		listed := digest(`select coalesce((thread).runs || ' runs, ' || (thread).branches || ' branches, active when ' || (thread).status, '-')
			from agui.threads(max_rows => 1000) as thread join agui.run on run.thread_key = '` + key + `' and run.run_no = 4
			where thread.thread_id = '` + fault.name + `' and thread.active_at = run.ended_at`)
		if listed != "4 runs, 2 branches, active when finished" {
			t.Errorf("%s: is listed with %s", fault.name, listed)
		}
	}
	if repaired < 15 {
		t.Errorf("only %d threads were repairable", repaired)
	}

	store := pgagui.New(pool, nil)
	_, err := store.Maintenance().RebuildSnapshots(ctx, "batch lost")
	if !errors.Is(err, pgagui.ErrLogDamaged) || !strings.HasPrefix(err.Error(), `thread "batch lost": its snapshots are not rebuilt `+
		`because its log is damaged: run "b": the batch at seq 17 should begin at seq 12: events are missing or double`) {
		t.Errorf("rebuilding from a damaged log: %v", err)
	}
	if _, err := store.Maintenance().RebuildSnapshots(ctx, "nobody"); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("rebuilding a thread that is unknown: %v", err)
	}
	// One before the branches, and one at the end of each of them.
	if snapshots, err := store.Maintenance().RebuildSnapshots(ctx, "nothing"); err != nil || snapshots != 3 {
		t.Errorf("rebuilding a healthy thread gives %d snapshots, error %v, want 3", snapshots, err)
	}
}

// What the server cannot read is a problem like others, and the checks go on.
func TestVerifyGoesOnAfterWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	url := testdb.New(t)
	pool := testdb.Connect(t, url)
	appendHealthyThread(t, pool, "t")
	testdb.Exec(t, pool, `
		alter table agui.batch disable trigger user;
		update agui.batch set n = 1, events = ('[{"deep":' || repeat('[', 3000) || repeat(']', 3000) || '}]')::json where first_seq = 12`)
	if _, err := pool.Exec(ctx, `alter database `+pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize()+` set max_stack_depth = '100kB'`); err != nil {
		t.Fatalf("make the stack small: %v", err)
	}
	shallow := testdb.Connect(t, url)
	want := []string{
		"b: the batch at seq 12 cannot be read: stack depth limit exceeded",
		"b: the batch at seq 17 should begin at seq 13: events are missing or double",
		"b: the run's row counts 9 events, its log has 5",
		"b: the snapshot cannot be compared with the log: stack depth limit exceeded",
	}
	if got := verifyInSQL(t, shallow, "t"); !slices.Equal(got, want) {
		t.Errorf("agui.verify says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	want[3] = "b: the snapshot is not what the log says: message 2 of 2 differs" // the fold in Go needs no stack
	reports := verifyThreads(t, shallow, jobs.VerifyOptions{})
	if got := described(reports[keyOf(t, pool, "t")].Problems); !slices.Equal(got, want) {
		t.Errorf("the job says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Streams of every kind, in trees with branches and runs side by side, compacted in part by either compactor, repacked in part, with
// runs in progress: there is nothing to find.
func TestVerifyFindsNothingInHealthyThreads(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	const seeds = 3
	for kind := range kindsOfStreams {
		for seed := *firstSeed; seed < *firstSeed+seeds; seed++ {
			random := rand.New(rand.NewPCG(seed, uint64(kind)))
			appendAsRuns(t, store, fmt.Sprint(kindsOfStreams[kind].name, " ", seed), compactiontest.Stream(seed, kindsOfStreams[kind].options), random)
		}
		must.Have(jobs.Compact(ctx, pool, jobs.CompactOptions{MaxRuns: 10, RunningEvery: 3}))(t)
		testdb.Exec(t, pool, `call agui.compact(10)`)
		testdb.Exec(t, pool, `call agui.repack(10, older_than => '0')`)
	}
	// A run that failed after it had finished.
	for _, statement := range []string{
		`select agui.append('late', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`,
		`call agui.compact()`,
		`select agui.append('late', 'r', '[{"type":"RUN_ERROR"}]')`,
	} {
		testdb.Exec(t, pool, statement)
	}
	for name, options := range map[string]jobs.VerifyOptions{"in Go": {Workers: 2}, "in SQL": {Workers: 2, InSQL: true}} {
		reports := verifyThreads(t, pool, options)
		if want := len(kindsOfStreams)*seeds + 1; len(reports) != want {
			t.Errorf("%s: %d threads were checked, want %d", name, len(reports), want)
		}
		snapshots := 0
		for _, thread := range reports {
			snapshots += thread.Snapshots
			if problems := described(thread.Problems); len(problems) > 0 {
				t.Errorf("%s: %s: %s", name, thread.ThreadID, strings.Join(problems, "\n"))
			}
		}
		if snapshots < len(reports)/2 {
			t.Errorf("%s: only %d snapshots were there to compare", name, snapshots)
		}
	}
}

// appendAsRuns appends a stream cut into runs, with beginnings and ends of their own, each the child of any run that has ended, now and
// then one that stays in progress.
func appendAsRuns(t *testing.T, store *pgagui.Store, thread string, stream []json.RawMessage, random *rand.Rand) {
	t.Helper()
	ctx := context.Background()
	stream = slices.DeleteFunc(stream, func(event json.RawMessage) bool {
		eventType := compaction.EventType(event)
		return eventType == "" || strings.HasPrefix(eventType, "RUN_")
	})
	var ended []string
	open := map[string]bool{}
	for number := 1; len(stream) > 0; number++ {
		run := fmt.Sprint("run \\", number)
		opening := map[string]string{"type": "RUN_STARTED", "runId": run}
		if len(ended) > 0 {
			opening["parentRunId"] = ended[random.IntN(len(ended))]
		}
		first := must.Have(json.Marshal(opening))(t)
		events := []json.RawMessage{first}
		n := min(1+random.IntN(15), len(stream))
		events = append(events, stream[:n]...)
		stream = stream[n:]
		if len(ended) == 0 || random.IntN(6) > 0 {
			events = append(events, json.RawMessage(`{"type":"RUN_FINISHED"}`))
			ended = append(ended, run)
		} else {
			open[run] = true
		}
		for len(events) > 0 {
			n := min(1+random.IntN(6), len(events))
			if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: run}, events[:n], pgagui.AppendOptions{Parallel: true}); err != nil {
				t.Fatalf("%s: %v", thread, err)
			}
			events = events[n:]
		}
		for run := range open {
			if random.IntN(4) == 0 {
				mustAppend(t, store, thread, run, rawEvents(`{"type":"RUN_ERROR"}`))
				delete(open, run)
				ended = append(ended, run)
			}
		}
	}
}

// A thread is checked as of one point in time, so concurrent writers, compaction and repack cause no problems.
func TestVerifyWhileOthersWrite(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	var writers errgroup.Group
	for thread := range 2 {
		writers.Go(func() error {
			for run := range 60 {
				for _, event := range []string{
					fmt.Sprintf(`{"type":"RUN_STARTED","runId":"%d"}`, run), fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m%d","delta":"word"}`, run),
					`{"type":"RUN_FINISHED"}`,
				} {
					if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: fmt.Sprint(thread), RunID: fmt.Sprint(run)}, []json.RawMessage{json.RawMessage(event)}, pgagui.AppendOptions{}); err != nil {
						return err
					}
				}
				if run%5 == 0 {
					if _, err := jobs.Compact(ctx, pool, jobs.CompactOptions{}); err != nil {
						return err
					}
					if _, err := pool.Exec(ctx, `call agui.repack(older_than => '0')`); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	written := make(chan error, 1)
	go func() { written <- writers.Wait() }()
	for isWritten := false; !isWritten; {
		select {
		case err := <-written:
			must.Do(t, err)
			isWritten = true
		default:
		}
		for _, thread := range verifyThreads(t, pool, jobs.VerifyOptions{Workers: 2}) {
			if len(thread.Problems) > 0 {
				t.Fatalf("thread %s: %q", thread.ThreadID, described(thread.Problems))
			}
		}
		for thread := range 2 {
			var problems int
			err := pool.QueryRow(ctx, `select count(*) from agui.thread, agui.verify(thread_id) where thread_id = $1`, fmt.Sprint(thread)).Scan(&problems)
			if err != nil || problems > 0 {
				t.Fatalf("thread %d: agui.verify finds %d problems, error %v", thread, problems, err)
			}
		}
	}
}

func TestVerifyChoosesThreads(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `
		select agui.append(thread_id, 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', scope => scope)
		from (values ('a', ''), ('b', ''), ('c', ''), ('a', 'mine'), ('b', 'mine')) as thread (thread_id, scope);
		select agui.append('orphan', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', scope => 'mine');
		alter table agui.thread disable trigger user;
		alter table agui.thread_activity drop constraint thread_activity_thread_key_fkey;
		alter table agui.run drop constraint run_thread_key_fkey;
		delete from agui.thread where thread_id = 'orphan';
		alter table agui.batch disable trigger user;
		update agui.batch set recorded_at = recorded_at - interval '2 days' where thread_key = agui.thread_key('', 'c')`,
		pgx.QueryExecModeSimpleProtocol)
	yesterday := time.Now().Add(-24 * time.Hour)
	for name, check := range map[string]struct {
		options  jobs.VerifyOptions
		threads  int
		problems int
	}{
		"a scope":                       {jobs.VerifyOptions{Scope: new("")}, 3, 0},
		"another scope and its orphans": {jobs.VerifyOptions{Scope: new("mine")}, 3, 1},
		"an unknown scope":              {jobs.VerifyOptions{Scope: new("whose")}, 0, 0},
		"all scopes":                    {jobs.VerifyOptions{Workers: 2}, 6, 1},
		"a thread, of no scope":         {jobs.VerifyOptions{Threads: []string{"a"}}, 1, 0},
		"given threads":                 {jobs.VerifyOptions{Scope: new("mine"), Threads: []string{"b", "orphan"}}, 2, 1},
		"a sample":                      {jobs.VerifyOptions{SampleThreads: 2}, 2, 0},
		"a larger sample than there is": {jobs.VerifyOptions{SampleThreads: 20}, 5, 0},
		"a share, all of it":            {jobs.VerifyOptions{SampleShare: 1}, 5, 0},
		"a tiny share":                  {jobs.VerifyOptions{SampleShare: 1e-12}, 0, 0},
		"those with news":               {jobs.VerifyOptions{Since: yesterday, Scope: new("")}, 2, 0},
		"a sample of those with news":   {jobs.VerifyOptions{Since: yesterday, Scope: new(""), SampleThreads: 9}, 2, 0},
	} {
		done, err := jobs.Verify(ctx, pool, check.options)
		if err != nil || done.Threads != check.threads || done.Problems != check.problems {
			t.Errorf("%s: %+v, error %v, want %d threads with %d problems", name, done, err, check.threads, check.problems)
		}
	}
	// A new snapshot is news, too.
	compactInGo(t, pool)
	if done, err := jobs.Verify(ctx, pool, jobs.VerifyOptions{Since: yesterday, Scope: new("")}); err != nil || done.Threads != 3 || done.Snapshots != 3 || done.Events != 6 || done.Runs != 3 {
		t.Errorf("after compaction: %+v, error %v", done, err)
	}
	if _, err := jobs.Verify(ctx, pool, jobs.VerifyOptions{Threads: []string{"a", "nobody's"}}); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("a thread that is unknown: %v", err)
	}
}

// A thread that takes longer than the server allows is an error, no problem, and the others are checked.
func TestVerifyGoesOnAfterAThreadThatFails(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	for _, thread := range []string{"a", "slow", "z"} {
		appendHealthyThread(t, pool, thread)
	}
	testdb.Exec(t, pool, `
		create function stop() returns boolean language plpgsql as $$ begin
			raise exception using errcode = 'query_canceled', message = 'canceling statement due to statement timeout';
		end $$;
		alter table agui.run enable row level security;
		alter table agui.run force row level security;
		create policy slow on agui.run using (case when thread_key = agui.thread_key('', 'slow') then stop() else true end);
		grant execute on function stop() to agui_reader`, pgx.QueryExecModeSimpleProtocol)
	reader := testdb.ConnectWith(t, pool.Config().ConnString(), func(config *pgxpool.Config) {
		config.AfterConnect = func(ctx context.Context, connection *pgx.Conn) error {
			_, err := connection.Exec(ctx, `set role agui_reader`)
			return err
		}
	})
	done, err := jobs.Verify(ctx, reader, jobs.VerifyOptions{SampleThreads: 3})
	if err == nil || !strings.Contains(err.Error(), `verify thread "slow": `) || done.Threads != 2 || done.Problems != 0 {
		t.Errorf("%+v, error %v", done, err)
	}
}
