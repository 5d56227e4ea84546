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

	seq, err := store.Append(ctx, "thread-1", "run-1", []json.RawMessage{
		json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-1"}`),
		json.RawMessage(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","delta":"Hello"}`),
	}, pgagui.AfterSeq(0))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the last event has seq", seq)

	restored, err := store.Restore(ctx, "thread-1", pgagui.At{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(restored.Messages), "messages, state", string(restored.State))

	for event, err := range store.Events(ctx, "thread-1", "", restored.Seq) {
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
	_, err := store.Append(ctx, "thread-1", "run-3", []json.RawMessage{
		json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-3","parentRunId":"run-1"}`),
	})
	switch {
	case errors.Is(err, pgagui.ErrUnknownParent):
		fmt.Println("run-1 is not a run of this thread")
	case errors.Is(err, pgagui.ErrRunInProgress):
		fmt.Println("wait for the run in progress, or give pgagui.Parallel()")
	case err != nil:
		log.Fatal(err)
	}
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
		_, err := store.WithTx(tx).Append(ctx, "thread-1", "run-2", []json.RawMessage{
			json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-2"}`),
		})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
