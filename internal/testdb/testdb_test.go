package testdb

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestMain(m *testing.M) { Main(m) }

func TestDatabaseHasTheSchema(t *testing.T) {
	t.Parallel()
	var version int
	err := Pool(t).QueryRow(t.Context(), `select version from agui.schema_migrations where not dirty`).Scan(&version)
	if err != nil || version == 0 {
		t.Errorf("version %d, error %v", version, err)
	}
}

func TestDatabasesAreSeparate(t *testing.T) {
	t.Parallel()
	first, second := Pool(t), Pool(t)
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

func TestEmptyDatabaseHasNoSchema(t *testing.T) {
	t.Parallel()
	var exists bool
	err := Connect(t, Empty(t)).QueryRow(t.Context(), `select to_regnamespace('agui') is not null`).Scan(&exists)
	if err != nil || exists {
		t.Errorf("schema agui exists: %t, error %v", exists, err)
	}
}

func TestDatabaseIsDroppedWithItsTest(t *testing.T) {
	t.Parallel()
	var address string
	t.Run("inner", func(t *testing.T) { address = New(t) })

	_, err := pgx.Connect(t.Context(), address)
	var refusal *pgconn.PgError
	const databaseDoesNotExist = "3D000"
	if !errors.As(err, &refusal) || refusal.Code != databaseDoesNotExist {
		t.Errorf("got %v, want SQLSTATE %s", err, databaseDoesNotExist)
	}
}

func BenchmarkNew(b *testing.B) {
	New(b) // makes the template
	for b.Loop() {
		New(b)
	}
}
