// Package schema installs, upgrades and removes pgagui's database objects.
//
// The migrations are the SQL files of this folder, in the form of golang-migrate (https://github.com/golang-migrate/migrate).
// Nothing in them relies on Go: its command line, or any other tool, can run them too. This package runs them with the
// version table agui.schema_migrations, one at a time among all processes, and waits only briefly for table locks, so that
// an upgrade never stands in the way of a server that is at work.
//
// A migration is applied whole or not at all: PostgreSQL runs a file as one transaction.
package schema

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

var (
	// ErrDirty means that the connection was lost while a migration ran, so nobody knows whether it was applied.
	ErrDirty = errors.New("a migration was interrupted")
	// ErrNewer means that the database was migrated by a newer version of this program.
	ErrNewer = errors.New("the database is newer than this program")
	// ErrInstalledOtherwise means that the schema agui has objects, but no version table of this package.
	ErrInstalledOtherwise = errors.New("the schema agui was installed with another tool")
	// ErrUnsupported means that the server is too old, or the database not in UTF8.
	ErrUnsupported = errors.New("unsupported database")
	// ErrBusy means that other sessions kept tables of agui locked for longer than a migration waits.
	ErrBusy = errors.New("tables of agui are in use")
)

const (
	oldestServer = 15

	// migrationLock is the advisory lock that a migrating process holds.
	migrationLock = 0x61677569_6d696772 // "aguimigr"

	// lockTimeout is how long one try waits for a table lock, patience how long tries go on.
	lockTimeout = 500 * time.Millisecond
	patience    = time.Minute
)

// State is how far a database has been migrated.
type State struct {
	Version uint // number of the last migration; 0: nothing is installed
	Latest  uint // number of the last migration that this program has
	Dirty   bool // the migration to Version was interrupted
}

// Status reads the state of a database, also of one that Up and Down refuse because it is dirty or newer.
// It fails with ErrInstalledOtherwise.
func Status(ctx context.Context, databaseURL string) (State, error) {
	connection, err := connect(ctx, databaseURL)
	if err != nil {
		return State{}, err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	return readState(ctx, connection)
}

// Up installs the schema, or upgrades it to the latest version. While another process migrates the same database it
// waits, until ctx ends. Use the address of the server itself: a pooler in transaction mode cannot keep a lock.
func Up(ctx context.Context, databaseURL string) error {
	return withMigrator(ctx, databaseURL, func(m *migrator, state State) error {
		version := state.Version
		for _, name := range upFiles() {
			if versionOf(name) <= version {
				continue
			}
			if err := m.run(ctx, name, +1, version); err != nil {
				return err
			}
			version = versionOf(name)
		}
		return nil
	})
}

// Down removes the schema with all that it stores. What others made in the schema agui stays, and so does the schema then.
func Down(ctx context.Context, databaseURL string) error {
	return withMigrator(ctx, databaseURL, func(m *migrator, state State) error {
		for _, name := range downFiles() {
			if versionOf(name) > state.Version {
				continue
			}
			if err := m.run(ctx, name, -1, versionOf(name)); err != nil {
				return err
			}
		}
		return m.removeSchema(ctx)
	})
}

//go:embed *.sql
var files embed.FS

// UpSQL is the SQL of all migrations in order, for those who install with another tool. Run it in one transaction.
func UpSQL() string {
	return concatenate(upFiles())
}

// DownSQL is the SQL that removes what UpSQL makes, with all that it stores. Run it in one transaction.
func DownSQL() string {
	return concatenate(downFiles())
}

func concatenate(names []string) string {
	var all strings.Builder
	for _, name := range names {
		content, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the file is part of the program; a test reads all of them
		}
		fmt.Fprintf(&all, "-- %s\n\n%s\n", name, content)
	}
	return all.String()
}

// upFiles are the names of the up migrations in order.
func upFiles() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err)
	}
	var names []string
	for _, entry := range entries {
		if matched, _ := path.Match("*.up.sql", entry.Name()); matched {
			names = append(names, entry.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(versionOf(a), versionOf(b)) })
	return names
}

// downFiles are the names of the down migrations, the last migration first.
func downFiles() []string {
	names := upFiles()
	slices.Reverse(names)
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".up.sql") + ".down.sql"
	}
	return names
}

func versionOf(name string) uint {
	digits, _, _ := strings.Cut(name, "_")
	version, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		panic(fmt.Sprintf("migration %s: its name must begin with its number", name))
	}
	return uint(version)
}

func latest() uint {
	names := upFiles()
	return versionOf(names[len(names)-1])
}

// migrator runs migrations on one database while it holds the lock for that.
type migrator struct {
	control *pgx.Conn // has the lock
	engine  *migrate.Migrate
}

// withMigrator calls the function with a migrator, once the database is found fit for migrations and locked.
func withMigrator(ctx context.Context, databaseURL string, work func(*migrator, State) error) (err error) {
	control, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer control.Close(context.WithoutCancel(ctx)) // releases the lock
	if err := checkServer(ctx, control); err != nil {
		return err
	}
	if err := lock(ctx, control); err != nil {
		return err
	}
	state, err := readState(ctx, control)
	if err != nil {
		return err
	}
	if state.Dirty {
		return fmt.Errorf("%w: agui.schema_migrations marks version %d as dirty; if the objects of that version are there, set dirty "+
			"to false in that row, if not, set also version to the one before, or delete the row when there is none", ErrDirty, state.Version)
	}
	if state.Version > state.Latest {
		return fmt.Errorf("%w: it has version %d of agui, this program has up to %d: use a newer program",
			ErrNewer, state.Version, state.Latest)
	}

	// Not "if not exists", which asks for the right to create schemas even when there is nothing to do.
	var exists bool
	if err := control.QueryRow(ctx, `select to_regnamespace('agui') is not null`).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		if _, err := control.Exec(ctx, `create schema agui`); err != nil {
			return fmt.Errorf("create the schema agui: %w", err)
		}
	}

	engine, err := newEngine(databaseURL)
	if err != nil {
		return err
	}
	defer func() {
		sourceErr, databaseErr := engine.Close()
		err = errors.Join(err, sourceErr, databaseErr)
	}()
	return work(&migrator{control: control, engine: engine}, state)
}

func connect(ctx context.Context, databaseURL string) (*pgx.Conn, error) {
	config, err := parse(databaseURL)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

func parse(databaseURL string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "pgagui migrate"
	}
	return config, nil
}

func checkServer(ctx context.Context, connection *pgx.Conn) error {
	var number int
	var version, encoding string
	err := connection.QueryRow(ctx, `
		select current_setting('server_version_num')::int, current_setting('server_version'), current_setting('server_encoding')`).
		Scan(&number, &version, &encoding)
	switch {
	case err != nil:
		return err
	case number < oldestServer*10000:
		return fmt.Errorf("%w: the server is PostgreSQL %s, at least %d is needed", ErrUnsupported, version, oldestServer)
	case encoding != "UTF8":
		return fmt.Errorf("%w: the encoding of the database is %s, it must be UTF8: create another one with encoding 'UTF8'",
			ErrUnsupported, encoding)
	}
	return nil
}

// lock takes the lock by polling: a session that waits for an advisory lock holds a snapshot, which a migration that
// builds an index concurrently would wait for in turn.
func lock(ctx context.Context, connection *pgx.Conn) error {
	for {
		var locked bool
		if err := connection.QueryRow(ctx, `select pg_try_advisory_lock($1)`, int64(migrationLock)).Scan(&locked); err != nil {
			return fmt.Errorf("lock the database for migrations: %w", err)
		}
		if locked {
			return nil
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("another process migrates the database: %w", err)
		}
	}
}

// pause lets some time pass before the next try, each time another, so that processes that began together spread out.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(50*time.Millisecond + rand.N(200*time.Millisecond)):
		return nil
	}
}

func readState(ctx context.Context, connection *pgx.Conn) (State, error) {
	state := State{Latest: latest()}
	var hasTable, hasObjects bool
	err := connection.QueryRow(ctx, `
		select to_regclass('agui.schema_migrations') is not null,
		       exists (select from pg_class where relnamespace in (to_regnamespace('agui'), to_regnamespace('agui_internal')))
		    or exists (select from pg_proc where pronamespace in (to_regnamespace('agui'), to_regnamespace('agui_internal')))
		    or exists (select from pg_type where typnamespace in (to_regnamespace('agui'), to_regnamespace('agui_internal')))`).Scan(&hasTable, &hasObjects)
	if err != nil {
		return state, fmt.Errorf("look what is installed: %w", err)
	}
	if !hasTable {
		if hasObjects {
			return state, fmt.Errorf("%w: it has objects, but no table agui.schema_migrations: upgrade with the tool that installed it",
				ErrInstalledOtherwise)
		}
		return state, nil
	}
	// golang-migrate has -1 there when taking back the first migration was interrupted.
	err = connection.QueryRow(ctx, `select greatest(version, 0), dirty from agui.schema_migrations`).Scan(&state.Version, &state.Dirty)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return state, fmt.Errorf("read agui.schema_migrations: %w", err)
	}
	return state, nil
}

// newEngine sets golang-migrate up with the version table in the schema agui.
func newEngine(databaseURL string) (*migrate.Migrate, error) {
	config, err := parse(databaseURL)
	if err != nil {
		return nil, err
	}
	setLockTimeout := fmt.Sprintf("set lock_timeout = %d", lockTimeout.Milliseconds())
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, setLockTimeout)
		return err
	}))
	driver, err := migratepgx.WithInstance(db, &migratepgx.Config{
		SchemaName:            "agui",
		MigrationsTable:       `"agui"."schema_migrations"`,
		MigrationsTableQuoted: true,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare agui.schema_migrations: %w", readable(err)), db.Close())
	}
	source, err := iofs.New(files, ".")
	if err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	return migrate.NewWithInstance("iofs", source, "pgx5", driver)
}

// run takes one migration file, the next one up (+1) or down (-1) from the version that the database has.
func (m *migrator) run(ctx context.Context, name string, direction int, version uint) error {
	for deadline := time.Now().Add(patience); ; {
		err := m.engine.Steps(direction)
		if err == nil {
			return nil
		}
		err = readable(err)
		var refusal *pgconn.PgError
		if !errors.As(err, &refusal) {
			return fmt.Errorf("migration %s: %w", name, err)
		}
		// The server refused, so it has rolled the whole file back, and nothing is dirty.
		clean := int(version)
		if version == 0 {
			clean = database.NilVersion
		}
		if cleanErr := m.engine.Force(clean); cleanErr != nil {
			return errors.Join(fmt.Errorf("migration %s: %w", name, err), fmt.Errorf("set the version back: %w", readable(cleanErr)))
		}
		const lockNotAvailable = "55P03"
		if refusal.Code != lockNotAvailable {
			return fmt.Errorf("migration %s: %w", name, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("migration %s: %w: other sessions held locks for %s: try again when long transactions have ended",
				name, ErrBusy, patience)
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("migration %s: %w: %w", name, ErrBusy, err)
		}
	}
}

// readable makes one line of an error of golang-migrate, which quotes the whole migration.
func readable(err error) error {
	var failure database.Error
	if pointer := (*database.Error)(nil); errors.As(err, &pointer) {
		failure = *pointer
	} else if !errors.As(err, &failure) {
		return err
	}
	var refusal *pgconn.PgError
	if errors.As(failure.OrigErr, &refusal) && refusal.Position > 0 {
		return fmt.Errorf("line %d: %w", failure.Line, refusal)
	}
	return failure.OrigErr
}

// removeSchema drops the version table, and the schema unless there is something else in it or someone else owns it.
func (m *migrator) removeSchema(ctx context.Context) error {
	if _, err := m.control.Exec(ctx, `drop table agui.schema_migrations`); err != nil {
		return fmt.Errorf("drop the version table: %w", err)
	}
	const (
		dependentObjectsStillExist = "2BP01"
		insufficientPrivilege      = "42501"
	)
	_, err := m.control.Exec(ctx, `drop schema agui`)
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && (refusal.Code == dependentObjectsStillExist || refusal.Code == insufficientPrivilege) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("drop the schema agui: %w", err)
	}
	return nil
}
