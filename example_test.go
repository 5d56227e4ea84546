package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
)

// Append what an agent streams, restore the conversation, follow what came since.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	store := pgagui.New(pool, nil)

	seq, err := store.Append(ctx, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, []json.RawMessage{
		json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-1"}`),
		json.RawMessage(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","delta":"Hello"}`),
	}, pgagui.AppendOptions{AfterSeq: new(int64(0))})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the last event has seq", seq)

	restored, err := store.Restore(ctx, "thread-1", pgagui.At{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(restored.Messages), "messages, state", string(restored.State))

	for event, err := range store.Events(ctx, "thread-1", pgagui.EventsOptions{AfterSeq: restored.Seq}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Seq, event.Type)
	}
}

// A run begins from an earlier one: a branch.
func ExampleStore_Append_branch() {
	ctx := context.Background()
	var store *pgagui.Store
	_, err := store.Append(ctx, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-3"}, []json.RawMessage{
		json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-3","parentRunId":"run-1"}`),
	}, pgagui.AppendOptions{})
	switch {
	case errors.Is(err, pgagui.ErrUnknownParent):
		fmt.Println("run-1 is not a run of this thread")
	case errors.Is(err, pgagui.ErrRunInProgress):
		fmt.Println("wait for the run in progress, or set AppendOptions.Parallel")
	case err != nil:
		log.Fatal(err)
	}
}

// A list of threads as a UI shows it, page by page.
func ExampleStore_Threads() {
	ctx := context.Background()
	var store *pgagui.Store
	options := pgagui.ThreadsOptions{Agent: "planner", Limit: 20}
	for {
		page, err := store.Threads(ctx, options)
		if err != nil {
			log.Fatal(err)
		}
		for _, thread := range page.Threads {
			fmt.Println(thread.ID, thread.Title, thread.Status, thread.ActiveAt)
		}
		if page.Cursor == "" {
			break
		}
		options.Cursor = page.Cursor
	}
}

// A thread gets its title before its first run.
func ExampleStore_SetThread() {
	ctx := context.Background()
	var store *pgagui.Store
	thread, err := store.SetThread(ctx, "thread-1", pgagui.ThreadChanges{
		Title: new("Three days in Lisbon"), Metadata: json.RawMessage(`{"folder":"trips"}`), CreateIfMissing: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(thread.Title)
}

// An append that is committed together with the caller's own changes.
func ExampleStore_WithTx() {
	ctx := context.Background()
	var pool *pgxpool.Pool
	var store *pgagui.Store
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update orders set status = 'asked' where id = 7`); err != nil {
			return err
		}
		_, err := store.WithTx(tx).Append(ctx, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-2"}, []json.RawMessage{
			json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-2"}`),
		}, pgagui.AppendOptions{})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}

// A process that runs agents has one recorder, whose runs share commits.
func ExampleStore_NewRecorder() {
	ctx := context.Background()
	var store *pgagui.Store
	// What an agent emits, from RUN_STARTED on.
	var run func(ctx context.Context, emit func(event json.RawMessage) error) error

	recorder := store.NewRecorder(nil)
	answer := func() error {
		recording, err := recorder.Begin(ctx, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, pgagui.BeginOptions{})
		if err != nil {
			return err
		}
		err = run(recording.Context(), func(event json.RawMessage) error { return recording.Record(ctx, event) })
		if errors.Is(context.Cause(recording.Context()), pgagui.ErrStopRequested) {
			fmt.Println("the user asked it to stop")
		}
		// Close returns once all is stored, also when ctx has ended. It ends a run that its agent has left open.
		return errors.Join(err, recording.Close(ctx))
	}
	err := answer()
	// At the end of the process, and before log.Fatal, which runs no deferred calls.
	if err := errors.Join(err, recorder.Close(ctx)); err != nil {
		log.Fatal(err)
	}
}

// A run that was taken for abandoned has ended in the log. What its agent said after that is kept as a run that goes on from there.
func ExampleRecording_AppendUnstored() {
	ctx := context.Background()
	var recording *pgagui.Recording

	err := recording.Close(ctx)
	if errors.Is(err, pgagui.ErrRunCutOff) {
		_, err = recording.AppendUnstored(ctx, "run-1-rest")
	}
	if err != nil {
		log.Printf("%d events are lost: %v", len(recording.Unstored()), err)
	}
}

// A page that is loaded shows what has passed in short, and then what comes. One that lost its connection goes on where it was.
func ExampleStore_Follow() {
	ctx := context.Background()
	var store *pgagui.Store

	var seen pgagui.Position
	for event, err := range store.Follow(ctx, "thread-1", pgagui.FollowOptions{RunID: "run-1", History: compaction.StreamShape}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("data: %s\n\n", event.JSON)
		if event.Seq > 0 {
			seen = event.Position()
		}
	}

	for event, err := range store.Follow(ctx, "thread-1", pgagui.FollowOptions{After: seen}) {
		if errors.Is(err, pgagui.ErrLogRewound) {
			fmt.Println("a failover took events back: load the page anew")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("data: %s\n\n", event.JSON)
	}
}

// What a part of the agent keeps of a conversation is changed by whoever has read its current version.
func ExampleSessions_Save() {
	ctx := context.Background()
	var store *pgagui.Store
	key := pgagui.SessionKey{ThreadID: "thread-1", Key: "todo"}
	for {
		// What run-2 has saved, or an ancestor of it.
		todo, err := store.Sessions().Load(ctx, key, pgagui.LoadOptions{RunID: "run-2"})
		if err != nil && !errors.Is(err, pgagui.ErrNotFound) {
			log.Fatal(err)
		}
		var items []string
		if err == nil {
			if err := json.Unmarshal(todo.JSON, &items); err != nil {
				log.Fatal(err)
			}
		}
		document, err := json.Marshal(append(items, "book the hotel"))
		if err != nil {
			log.Fatal(err)
		}
		version, err := store.Sessions().Save(ctx, key, document, pgagui.SaveOptions{RunID: "run-2", ExpectedVersion: todo.Version})
		if errors.Is(err, pgagui.ErrStaleVersion) {
			continue // another writer came first: once more, with what it has saved
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("saved as version", version)
		return
	}
}

// An audit reads everything that happened in a thread, a page at a time, and goes on later where it was.
func ExampleStore_History() {
	ctx := context.Background()
	var store *pgagui.Store
	options := pgagui.HistoryOptions{Limit: 1000}
	for {
		page, err := store.History(ctx, "thread-1", options)
		if err != nil {
			log.Fatal(err)
		}
		for _, event := range page.Events {
			fmt.Println(event.Seq, event.Type, event.Count, "events", string(event.JSON))
		}
		options.AfterSeq = page.AfterSeq // keep it to go on from here
		if len(page.Events) < options.Limit {
			return
		}
	}
}

// What tools did for a conversation, and what the user still has to answer.
func ExampleStore_ToolCalls() {
	ctx := context.Background()
	var store *pgagui.Store
	calls, err := store.ToolCalls(ctx, "thread-1", pgagui.ToolCallsOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, call := range calls {
		switch call.Status {
		case pgagui.ToolCallCompleted:
			fmt.Println(call.Name, call.Arguments, "gave", string(call.Result), "after", call.EndedAt.Sub(call.StartedAt))
		case pgagui.ToolCallCalled:
			fmt.Println(call.Name, call.Arguments, "waits for its result")
		case pgagui.ToolCallCutOff:
			fmt.Println(call.Name, "was cut off")
		}
	}
}

// A client connects: what has passed as a snapshot, then what comes, each event with its place in the log as the id of its frame. A
// client that connects to a thread before its first run gets an empty history.
func ExampleStore_Attach() {
	ctx := context.Background()
	var store *pgagui.Store

	attached, err := store.Attach(ctx, "thread-1", pgagui.AttachOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, event := range attached.Events {
		fmt.Printf("data: %s\n\n", event)
	}

	options := pgagui.FollowOptions{After: attached.Position, Stay: true}
	for event, err := range store.Follow(ctx, "thread-1", options) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("id: %d\ndata: %s\n\n", event.Seq, event.JSON)
	}
}
