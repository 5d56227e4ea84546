package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/internal/testdb"
)

// openPool stands for pgxpool.New(ctx, os.Getenv("DATABASE_URL")). Its database has the schema agui.
func openPool() (pool *pgxpool.Pool, closePool func()) { return testdb.Example() }

// answerRun appends a run in which a user asks something and the assistant answers.
func answerRun(ctx context.Context, store *pgagui.Store, run pgagui.RunRef, question, answer string, options pgagui.AppendOptions) {
	options.Input = fmt.Appendf(nil, `{"messages":[{"id":"u-%s","role":"user","content":%q}]}`, run.RunID, question)
	_, err := store.Append(ctx, run, []json.RawMessage{
		fmt.Appendf(nil, `{"type":"RUN_STARTED","threadId":%q,"runId":%q}`, run.ThreadID, run.RunID),
		fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"a-%s","role":"assistant","delta":%q}`, run.RunID, answer),
		fmt.Appendf(nil, `{"type":"RUN_FINISHED","threadId":%q,"runId":%q}`, run.ThreadID, run.RunID),
	}, options)
	if err != nil {
		log.Fatal(err)
	}
}

// Append what an agent streams, restore the conversation, and read the log.
func Example() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	store := pgagui.New(pool, nil)

	run := pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}
	seq, err := store.Append(ctx, run, []json.RawMessage{
		json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-1"}`),
		json.RawMessage(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","delta":"Hello"}`),
	}, pgagui.AppendOptions{AfterSeq: new(int64(0))}) // idempotent: it can be retried
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the last event has seq", seq)

	restored, err := store.Restore(ctx, "thread-1", pgagui.At{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(restored.Messages[0]))

	for event, err := range store.Events(ctx, "thread-1", pgagui.EventsOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Seq, event.Type)
	}
	// Output:
	// the last event has seq 2
	// {"id":"m1","role":"assistant","content":"Hello"}
	// 1 RUN_STARTED
	// 2 TEXT_MESSAGE_CHUNK
}

// A run that names an earlier one as its parent begins a branch.
func ExampleStore_Append_branch() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	store := pgagui.New(pool, nil)
	answerRun(ctx, store, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, "Where to?", "To Lisbon.", pgagui.AppendOptions{})
	answerRun(ctx, store, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-2"}, "When?", "In May.", pgagui.AppendOptions{})

	run := pgagui.RunRef{ThreadID: "thread-1", RunID: "run-3"}
	started, err := events.RunStarted{ThreadID: run.ThreadID, RunID: run.RunID}.Event()
	if err != nil {
		log.Fatal(err)
	}
	_, err = store.Append(ctx, run, []json.RawMessage{started}, pgagui.AppendOptions{ParentRunID: "run-1"})
	switch {
	case errors.Is(err, pgagui.ErrUnknownParent):
		fmt.Println("run-1 is not a run of this thread")
	case errors.Is(err, pgagui.ErrRunInProgress):
		fmt.Println("another run is in progress")
	case err != nil:
		log.Fatal(err)
	}

	branches, err := store.Branches(ctx, "thread-1")
	if err != nil {
		log.Fatal(err)
	}
	for _, branch := range branches {
		fmt.Println(branch.RunID, branch.Status, "forked from", branch.ForkedFrom)
	}
	// Output:
	// run-2 finished forked from run-1
	// run-3 running forked from run-1
}

// A list of threads as a UI shows it, page by page.
func ExampleStore_Threads() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	store := pgagui.New(pool, nil)
	for i, question := range []string{"Where to?", "When?", "With whom?"} {
		answerRun(ctx, store, pgagui.RunRef{ThreadID: fmt.Sprint("thread-", i+1), RunID: "run-1"}, question, "…", pgagui.AppendOptions{})
	}

	options := pgagui.ThreadsOptions{Limit: 2}
	for {
		page, err := store.Threads(ctx, options)
		if err != nil {
			log.Fatal(err)
		}
		for _, thread := range page.Threads {
			fmt.Println(thread.ID, thread.Title, thread.Status)
		}
		if !page.HasMore {
			break
		}
		options.Cursor = page.Cursor
		fmt.Println("next page")
	}
	// Output:
	// thread-3 With whom? finished
	// thread-2 When? finished
	// next page
	// thread-1 Where to? finished
}

// A thread can have a title before its first run.
func ExampleStore_SetThread() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	store := pgagui.New(pool, nil)

	thread, err := store.SetThread(ctx, "thread-1", pgagui.ThreadChanges{
		Title: new("Three days in Lisbon"), Metadata: json.RawMessage(`{"folder":"trips"}`), CreateIfMissing: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(thread.Title, string(thread.Metadata))
	// Output: Three days in Lisbon {"folder": "trips"}
}

// An append is committed together with the caller's own changes.
func ExampleStore_WithTx() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	store := pgagui.New(pool, nil)

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `create table orders as select 7 as id, 'confirmed' as status`); err != nil {
			return err
		}
		_, err := store.WithTx(tx).Append(ctx, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, []json.RawMessage{
			json.RawMessage(`{"type":"TEXT_MESSAGE_CHUNK"}`), // refused: a new run begins with RUN_STARTED
		}, pgagui.AppendOptions{})
		return err
	})
	fmt.Println(errors.Is(err, pgagui.ErrUnknownRun))
	var orders *string
	if err := pool.QueryRow(ctx, `select to_regclass('orders')::text`).Scan(&orders); err != nil {
		log.Fatal(err)
	}
	fmt.Println(orders == nil)
	// Output:
	// true
	// true
}

// A process that runs agents has one recorder. Its runs share commits.
func ExampleStore_NewRecorder() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	store := pgagui.New(pool, nil)
	// The agent sends its events to emit, from RUN_STARTED on.
	agent := func(ctx context.Context, emit func(event json.RawMessage) error) error {
		return errors.Join(
			emit(json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-1"}`)),
			emit(json.RawMessage(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","delta":"Hello"}`)),
			emit(json.RawMessage(`{"type":"RUN_FINISHED","threadId":"thread-1","runId":"run-1"}`)),
		)
	}

	recorder := store.NewRecorder(nil)
	run := func() error {
		recording, err := recorder.Begin(ctx, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, pgagui.BeginOptions{})
		if err != nil {
			return err
		}
		err = agent(recording.Context(), func(event json.RawMessage) error { return recording.Record(ctx, event) })
		if errors.Is(context.Cause(recording.Context()), pgagui.ErrStopRequested) {
			fmt.Println("the user asked the run to stop")
		}
		// Close returns when all is stored. It ends a run that its agent has left open.
		return errors.Join(err, recording.Close(ctx))
	}
	err := run()
	// Close the recorder at the end of the process, and before log.Fatal, which runs no deferred calls.
	if err := errors.Join(err, recorder.Close(ctx)); err != nil {
		log.Fatal(err)
	}

	status, err := store.Status(ctx, pgagui.RunRef{ThreadID: "thread-1"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.RunID, status.Status, "at seq", status.LastSeq)
	// Output: run-1 finished at seq 3
}

// A server learns at once that a run cannot begin, and answers with 409 Conflict.
func ExampleRecorder_Begin() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	recorder := pgagui.New(pool, nil).NewRecorder(nil)
	defer recorder.Close(ctx)

	for _, runID := range []string{"run-1", "run-2"} {
		started, err := events.RunStarted{ThreadID: "thread-1", RunID: runID}.Event()
		if err != nil {
			log.Fatal(err)
		}
		_, err = recorder.Begin(ctx, pgagui.RunRef{ThreadID: "thread-1", RunID: runID}, pgagui.BeginOptions{Start: started})
		fmt.Println(runID, "conflict:", errors.Is(err, pgagui.ErrRunInProgress))
	}
	// Output:
	// run-1 conflict: false
	// run-2 conflict: true
}

// A client connects: it gets the history as a snapshot, then the events that follow. The position of an
// event is the id of its frame, with which a client that lost its connection resumes.
func ExampleStore_Attach() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	store := pgagui.New(pool, nil)
	answerRun(ctx, store, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, "Where to?", "To Lisbon.", pgagui.AppendOptions{})

	attached, err := store.Attach(ctx, "thread-1", pgagui.AttachOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, event := range attached.Events {
		fmt.Printf("data: %s\n", event)
	}

	answerRun(ctx, store, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-2"}, "When?", "In May.", pgagui.AppendOptions{})
	for event, err := range store.Follow(ctx, "thread-1", pgagui.FollowOptions{After: attached.Position}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Seq, event.Type) // fmt.Printf("id: %s\ndata: %s\n\n", event.Position(), event.JSON)
	}
	// Output:
	// data: {"type":"RUN_STARTED","threadId":"thread-1","runId":"run-1"}
	// data: {"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u-run-1","role":"user","content":"Where to?"},{"id":"a-run-1","role":"assistant","content":"To Lisbon."}]}
	// data: {"type":"STATE_SNAPSHOT","snapshot":{}}
	// data: {"type":"RUN_FINISHED","threadId":"thread-1","runId":"run-1"}
	// 4 RUN_STARTED
	// 5 TEXT_MESSAGE_CHUNK
	// 6 RUN_FINISHED
}

// A follower resumes behind the last event that it has seen, in any process.
func ExampleStore_Follow() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	store := pgagui.New(pool, nil)
	answerRun(ctx, store, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, "Where to?", "To Lisbon.", pgagui.AppendOptions{})

	var seen pgagui.Position
	if err := seen.UnmarshalText([]byte("2")); err != nil { // of the header Last-Event-ID
		log.Fatal(err)
	}
	for event, err := range store.Follow(ctx, "thread-1", pgagui.FollowOptions{After: seen}) {
		if errors.Is(err, pgagui.ErrLogRewound) {
			fmt.Println("a failover has lost events: load the page anew")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Seq, event.Type)
	}
	// Output: 3 RUN_FINISHED
}

// A run ended in the log because its writer seemed to be dead. AppendUnstored stores the rest of its
// events as a run of its own, which continues it.
func ExampleRecording_AppendUnstored() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	store := pgagui.New(pool, nil)
	recorder := store.NewRecorder(nil)
	defer recorder.Close(ctx)
	run := pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}
	recording, err := recorder.Begin(ctx, run, pgagui.BeginOptions{
		Start: json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-1"}`),
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := store.Abandon(ctx, run, pgagui.AbandonOptions{Reason: "its writer is gone"}); err != nil {
		log.Fatal(err)
	}
	_ = recording.Record(ctx, json.RawMessage(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","delta":"I am still here"}`))

	err = recording.Close(ctx)
	if errors.Is(err, pgagui.ErrRunCutOff) {
		_, err = recording.AppendUnstored(ctx, "run-1-rest")
	}
	fmt.Println(err, len(recording.Unstored()), "events are lost")
	// Output: <nil> 0 events are lost
}

// Writers of session state replace the version that they have read.
func ExampleSessions_Save() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	sessions := pgagui.New(pool, nil).Sessions()

	key := pgagui.SessionKey{ThreadID: "thread-1", Key: "todo"}
	for _, item := range []string{"book the hotel", "pack"} {
		for {
			todo, err := sessions.Load(ctx, key, pgagui.LoadOptions{})
			if err != nil && !errors.Is(err, pgagui.ErrNotFound) {
				log.Fatal(err)
			}
			var items []string
			if err == nil {
				if err := json.Unmarshal(todo.JSON, &items); err != nil {
					log.Fatal(err)
				}
			}
			document, err := json.Marshal(append(items, item))
			if err != nil {
				log.Fatal(err)
			}
			version, err := sessions.Save(ctx, key, document, pgagui.SaveOptions{ExpectedVersion: todo.Version})
			if errors.Is(err, pgagui.ErrStaleVersion) {
				continue // another writer was faster: read its version and retry
			}
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println("version", version, string(document))
			break
		}
	}
	// Output:
	// version 1 ["book the hotel"]
	// version 2 ["book the hotel","pack"]
}

// A workflow engine saves its checkpoints beside the log of a thread.
func ExampleCheckpoints_Save() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	checkpoints := pgagui.New(pool, nil).Checkpoints()

	for _, checkpoint := range []pgagui.Checkpoint{
		{ID: "step-1", JSON: json.RawMessage(`{"step":1}`)},
		{ID: "step-2", ParentID: "step-1", JSON: json.RawMessage(`{"step":2}`)},
	} {
		if _, err := checkpoints.Save(ctx, "thread-1", checkpoint); err != nil {
			log.Fatal(err)
		}
	}
	last, err := checkpoints.Load(ctx, "thread-1", pgagui.CheckpointRef{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(last.ID, string(last.JSON))
	// Output: step-2 {"step":2}
}

// An audit reads everything that happened in a thread, page by page, and continues later from its cursor.
func ExampleStore_History() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	store := pgagui.New(pool, nil)
	answerRun(ctx, store, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, "Where to?", "To Lisbon.", pgagui.AppendOptions{})

	options := pgagui.HistoryOptions{Limit: 2}
	for {
		page, err := store.History(ctx, "thread-1", options)
		if err != nil {
			log.Fatal(err)
		}
		for _, event := range page.Events {
			fmt.Println(event.Seq, event.Type, "of", event.Count)
		}
		options.AfterSeq = page.AfterSeq
		if !page.HasMore {
			break
		}
	}
	// Output:
	// 1 RUN_STARTED of 1
	// 2 TEXT_MESSAGE_CHUNK of 1
	// 3 RUN_FINISHED of 1
}

// What tools did in a conversation, and which calls still wait for their result.
func ExampleStore_ToolCalls() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	store := pgagui.New(pool, nil)
	_, err := store.Append(ctx, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, []json.RawMessage{
		json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-1"}`),
		json.RawMessage(`{"type":"TOOL_CALL_CHUNK","toolCallId":"c1","toolCallName":"weather","delta":"{\"city\":\"Lisbon\"}"}`),
		json.RawMessage(`{"type":"TOOL_CALL_RESULT","messageId":"m2","toolCallId":"c1","content":"sunny"}`),
		json.RawMessage(`{"type":"TOOL_CALL_CHUNK","toolCallId":"c2","toolCallName":"confirm","delta":"{}"}`),
		json.RawMessage(`{"type":"RUN_FINISHED","threadId":"thread-1","runId":"run-1"}`),
	}, pgagui.AppendOptions{})
	if err != nil {
		log.Fatal(err)
	}

	calls, err := store.ToolCalls(ctx, "thread-1", pgagui.ToolCallsOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, call := range calls {
		fmt.Println(call.Name, call.Arguments, call.Status, string(call.Result))
	}
	// Output:
	// weather {"city":"Lisbon"} completed "sunny"
	// confirm {} called
}

// What changed between two points of a thread.
func ExampleStore_Diff() {
	ctx := context.Background()
	pool, closePool := openPool()
	defer closePool()
	store := pgagui.New(pool, nil)
	answerRun(ctx, store, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, "Where to?", "To Lisbon.", pgagui.AppendOptions{})
	answerRun(ctx, store, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-2"}, "When?", "In May.", pgagui.AppendOptions{})

	diff, err := store.Diff(ctx, "thread-1", pgagui.DiffOptions{From: pgagui.At{RunID: "run-1"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range diff.Messages {
		fmt.Println(message.Change, message.ID, string(message.To))
	}
	// Output:
	// added u-run-2 {"id":"u-run-2","role":"user","content":"When?"}
	// added a-run-2 {"id":"a-run-2","role":"assistant","content":"In May."}
}
