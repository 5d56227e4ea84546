package test

import (
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/sql/schema"
)

const oneRun = `[{"type":"RUN_STARTED"},{"type":"CUSTOM","name":"n","value":1},{"type":"RUN_FINISHED"}]`

// copied is what a consumer of events has received: thread and seq, each once.
type copied map[string]string

// read takes what the consumer has, and returns the error that ended it.
func (c copied) read(t *testing.T, consumer pgagui.Consumer) error {
	t.Helper()
	for event, err := range consumer.Events(t.Context()) {
		switch {
		case err != nil:
			return err
		case event.IsErased:
			c["erased "+event.ThreadUID] = ""
		default:
			c[fmt.Sprint(event.ThreadID, " ", event.Seq)] = event.ThreadUID
		}
	}
	return nil
}

// readUntil reads until something has come.
func (c copied) readUntil(t *testing.T, consumer pgagui.Consumer, what string) {
	t.Helper()
	wait.For(t, what, func() bool {
		must.Do(t, c.read(t, consumer))
		_, has := c[what]
		return has
	})
}

// In a database that was restored from a dump, in a cluster whose transactions have lower or higher numbers, the place of a consumer is
// refused. Once it begins again, it gets all events, and all that come later.
func TestConsumersBeginAgainInARestoredDatabase(t *testing.T) {
	t.Parallel()
	dump, restore := testdb.Program(t, testneeds.PgDump, "pg_dump"), testdb.Program(t, testneeds.PgDump, "pg_restore")
	burn := func(pool *pgxpool.Pool) {
		testdb.Exec(t, pool, `do $$ begin for i in 1 .. 3000 loop perform pg_current_xact_id(); commit; end loop; end $$`)
	}
	server := testdb.Server(t, nil)
	source := testdb.Connect(t, server.URL("postgres"))
	must.Do(t, schema.Up(t.Context(), server.URL("postgres")))
	burn(source)
	testdb.Exec(t, source, `select agui.append('kept', 'r', '`+oneRun+`'), agui.append('gone', 'r', '`+oneRun+`')`)
	testdb.Exec(t, source, `select agui.add_webhook('hook', 'https://example.com')`)
	before := copied{}
	before.readUntil(t, pgagui.New(source, nil).Consumer("copy"), "kept 3")
	testdb.Exec(t, source, `select agui.erase('gone')`)
	before.readUntil(t, pgagui.New(source, nil).Consumer("copy"), "erased "+before["gone 1"])
	file := t.TempDir() + "/dump"
	if text, err := exec.Command(dump, "-d", server.URL("postgres"), "--format=custom", "--file="+file).CombinedOutput(); err != nil {
		testneeds.Skip(t, testneeds.PgDump, "pg_dump: %s", text) // it is older than the server
	}

	for _, age := range []string{"younger", "older"} {
		t.Run(age, func(t *testing.T) {
			t.Parallel()
			target := testdb.Server(t, nil)
			if text, err := exec.Command(restore, "--no-owner", "--no-privileges", "--exit-on-error", "-d", target.URL("postgres"), file).CombinedOutput(); err != nil {
				t.Fatalf("%s", text)
			}
			pool := testdb.Connect(t, target.URL("postgres"))
			if age == "older" {
				burn(pool)
				burn(pool)
			}
			const isLower = `select max(changed_in) > pg_current_xact_id() from agui.run`
			if is := testdb.Ask[bool](t, pool, isLower); is != (age == "younger") {
				t.Fatalf("numbers of the cluster are lower: %t", is)
			}
			consumer := pgagui.New(pool, nil).Consumer("copy")
			got := copied{}
			if err := got.read(t, consumer); !errors.Is(err, pgagui.ErrOtherHistory) || len(got) > 0 {
				t.Fatalf("%v, %v; want ErrOtherHistory", got, err)
			}
			must.Do(t, consumer.Move(t.Context(), ""))
			got.readUntil(t, consumer, "kept 3")
			if len(got) != 3 || got["kept 1"] != before["kept 1"] {
				t.Errorf("%v, want the events of what is kept, which has the id that it had", got)
			}
			testdb.Exec(t, pool, `select agui.append('new', 'r', '`+oneRun+`'), agui.append('kept', 'r2', '`+oneRun+`')`)
			got.readUntil(t, consumer, "kept 6")
			got.readUntil(t, consumer, "new 3")
			testdb.Exec(t, pool, `select agui.erase('kept')`)
			got.readUntil(t, consumer, "erased "+got["kept 1"])
			// The endpoint gets requests from the database that the dump comes from.
			for _, is := range []bool{true, false} {
				if elsewhere := testdb.Ask[bool](t, pool, `select is_elsewhere from agui.webhooks()`); elsewhere != is {
					t.Errorf("its webhook is of another database: %t, want %t", elsewhere, is)
				}
				testdb.Exec(t, pool, `select agui.take_over_webhooks()`)
			}
		})
	}
}

// A transaction that is prepared holds back what was changed after it began, also itself, until it is committed or rolled back; also over
// a crash of the server.
func TestPreparedTransactionsHoldChanges(t *testing.T) {
	t.Parallel()
	server := testdb.Server(t, map[string]string{"max_prepared_transactions": "2"})
	must.Do(t, schema.Up(t.Context(), server.URL("postgres")))
	pool := testdb.Connect(t, server.URL("postgres"))
	consumer := pgagui.New(pool, nil).Consumer("copy")
	testdb.Exec(t, pool, `select agui.append('first', 'r', '`+oneRun+`'), agui.append('erased', 'r', '`+oneRun+`')`)
	got := copied{}
	got.readUntil(t, consumer, "first 3")
	got.readUntil(t, consumer, "erased 3")
	wait.For(t, "the end of the first reading", func() bool {
		testdb.Exec(t, pool, `select agui.append('more', gen_random_uuid()::text, '`+oneRun+`')`)
		must.Do(t, got.read(t, consumer))
		return testdb.Ask[bool](t, pool, `select position like '% changed %' from agui.consumer`)
	})
	erased := "erased " + got["erased 3"]
	for _, is := range []struct{ end, run string }{{"rollback prepared", "rolled back"}, {"commit prepared", "committed"}} {
		testdb.Exec(t, pool, fmt.Sprintf(`begin; select agui.append('%s', 'r', '%s'), agui.erase('erased'); prepare transaction 'p'`, is.run, oneRun))
		testdb.Exec(t, pool, fmt.Sprintf(`select agui.append('after %s', 'r', '%s')`, is.run, oneRun))
		for _, crashed := range []bool{false, true} {
			if crashed {
				must.Do(t, server.Kill())
				must.Do(t, server.Restart(t.Context()))
				pool.Reset()
			}
			had := len(got)
			if err := got.read(t, consumer); err != nil || len(got) != had {
				t.Errorf("while it is prepared: %v, %v", got, err)
			}
		}
		testdb.Exec(t, pool, is.end+` 'p'`)
		got.readUntil(t, consumer, fmt.Sprintf("after %s 3", is.run))
		_, hasRun := got[is.run+" 3"]
		_, hasErasure := got[erased]
		if isCommitted := is.run == "committed"; hasRun != isCommitted || hasErasure != isCommitted {
			t.Errorf("after %s: %v", is.end, got)
		}
	}
}
