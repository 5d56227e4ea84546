package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/sql/schema"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func TestTheChainHasBothSchemas(t *testing.T) {
	t.Parallel()
	url := testdb.Empty(t)
	for range 2 { // the second time there is nothing to do
		if err := up(t.Context(), url, steps); err != nil {
			t.Fatal(err)
		}
	}
	pool := testdb.Connect(t, url)
	if _, err := pool.Exec(t.Context(), `
		insert into customer (email) values ('a@example.com');
		insert into conversation (customer_id, thread_id) values (1, 'thread-1');
		select agui.append('thread-1', 'run-1', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`); err != nil {
		t.Error(err)
	}

	// Down takes back the tables that came last, and then refuses to delete conversations.
	chain, err := open(url, steps)
	if err != nil {
		t.Fatal(err)
	}
	defer chain.Close()
	if _, err := chain.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := chain.Down(t.Context()); err == nil || !strings.Contains(err.Error(), "agui.allow_removal") {
		t.Errorf("down with a conversation: %v", err)
	}
}

// A database that has version 2 of pgagui gets the rest by another step.
func TestAnUpgradeIsAnotherStep(t *testing.T) {
	t.Parallel()
	url := testdb.Empty(t)
	later := append(steps, step{number: 4, from: 2})
	chain, err := open(url, later)
	if err != nil {
		t.Fatal(err)
	}
	defer chain.Close()
	if _, err := chain.UpTo(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if err := up(t.Context(), url, steps); !errors.Is(err, schema.ErrOlder) {
		t.Errorf("without the step: %v", err)
	}
	if err := up(t.Context(), url, later); err != nil {
		t.Error(err)
	}
	if version, err := chain.GetDBVersion(t.Context()); version != 4 || err != nil {
		t.Errorf("version %d, %v", version, err)
	}
	if _, err := chain.DownTo(t.Context(), 0); err != nil {
		t.Errorf("down, without conversations: %v", err)
	}
}
