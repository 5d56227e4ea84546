package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/golang-migrate/migrate/v4"

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
	chain, db, err := open(url, steps)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := chain.Steps(-1); err != nil {
		t.Fatal(err)
	}
	if err := chain.Steps(-1); err == nil || !strings.Contains(err.Error(), "agui.allow_removal") {
		t.Errorf("down with a conversation: %v", err)
	}
}

// A database that has version 2 of pgagui gets the rest by another step.
func TestAnUpgradeIsAnotherStep(t *testing.T) {
	t.Parallel()
	url := testdb.Empty(t)
	later := append(steps, step{number: 4, from: 2})
	chain, db, err := open(url, later)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := chain.Migrate(3); err != nil {
		t.Fatal(err)
	}
	if err := up(t.Context(), url, steps); !errors.Is(err, schema.ErrOlder) {
		t.Errorf("without the step: %v", err)
	}
	if err := up(t.Context(), url, later); err != nil {
		t.Error(err)
	}
	if version, isDirty, err := chain.Version(); version != 4 || isDirty || err != nil {
		t.Errorf("version %d, dirty %t, %v", version, isDirty, err)
	}
	if err := chain.Down(); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		t.Errorf("down, without conversations: %v", err)
	}
}
