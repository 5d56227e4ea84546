package testdb

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestMain(m *testing.M) { Main(m) }

// withNote is a template with a table.
var withNote = NewTemplate("a note", func(ctx context.Context, databaseURL string) error {
	connection, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	_, err = connection.Exec(ctx, `create table public.note as select 'from the template' as text`)
	return errors.Join(err, connection.Close(ctx))
})

func TestDatabaseIsACopyOfTheTemplate(t *testing.T) {
	t.Parallel()
	var text string
	err := Connect(t, withNote.New(t)).QueryRow(t.Context(), `select text from public.note`).Scan(&text)
	if err != nil || text != "from the template" {
		t.Errorf("text %q, error %v", text, err)
	}
}

// Otherwise another process, which has other templates, drops it.
func TestTemplateIsLockedWhileTheProcessLives(t *testing.T) {
	t.Parallel()
	withNote.New(t)
	for range 2 { // the first finds what is out of use, the second takes it
		runtime.GC()
	}
	for deadline := time.Now().Add(300 * time.Millisecond); time.Now().Before(deadline); {
		var unused bool
		err := mustServer(t).pool.QueryRow(t.Context(), `select pg_try_advisory_xact_lock(hashtextextended($1, 0))`, withNote.name).Scan(&unused)
		if err != nil || unused {
			t.Fatalf("unused %t, error %v", unused, err)
		}
	}
}

func TestDatabasesAreSeparate(t *testing.T) {
	t.Parallel()
	first, second := Connect(t, withNote.New(t)), Connect(t, withNote.New(t))
	if _, err := first.Exec(t.Context(), `create table public.mine ()`); err != nil {
		t.Fatal(err)
	}
	var exists bool
	if err := second.QueryRow(t.Context(), `select to_regclass('public.mine') is not null`).Scan(&exists); err != nil {
		t.Fatal(err)
	}
	if exists {
		t.Error("a table made in one database is in the other")
	}
}

func TestEmptyDatabaseIsNoCopy(t *testing.T) {
	t.Parallel()
	var exists bool
	err := Connect(t, Empty(t)).QueryRow(t.Context(), `select to_regclass('public.note') is not null`).Scan(&exists)
	if err != nil || exists {
		t.Errorf("the table of a template exists: %t, error %v", exists, err)
	}
}

func TestDatabasesAreDroppedAfterTheirTests(t *testing.T) {
	t.Parallel()
	var address string
	t.Run("first", func(t *testing.T) { address = withNote.New(t) })
	for range dropsAtOnce - 1 {
		t.Run("later", func(t *testing.T) { withNote.New(t) })
	}

	_, err := pgx.Connect(t.Context(), address)
	var refusal *pgconn.PgError
	const databaseDoesNotExist = "3D000"
	if !errors.As(err, &refusal) || refusal.Code != databaseDoesNotExist {
		t.Errorf("got %v, want SQLSTATE %s", err, databaseDoesNotExist)
	}
}

func BenchmarkNew(b *testing.B) {
	withNote.New(b) // makes the template
	for b.Loop() {
		withNote.New(b)
	}
}
