package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/internal/migration"
)

var (
	// ErrNotInstalled means that the database has no schema agui.
	ErrNotInstalled = errors.New("the database has no schema agui")
	// ErrOlder means that the database has a version of the schema from before this program.
	ErrOlder = errors.New("the schema agui is older than this program")
	// ErrNewer means that the database was migrated by a newer version of this program, and that its schema does not serve this version.
	ErrNewer = errors.New("the schema agui is newer than this program")
	// ErrOtherBuild means that the schema comes from migrations whose text is not that of this program's.
	ErrOtherBuild = errors.New("the schema agui was installed by another build of pgagui")
	// ErrUnreleased means that the schema is of another unreleased build, from which Up goes on.
	ErrUnreleased = errors.New("the schema agui is of another unreleased build of pgagui")
	// ErrHoldsData means that Down would delete conversations, and DeleteData does not allow it.
	ErrHoldsData = errors.New("the schema agui holds conversations")
	// ErrChanged means that objects of the schema are not as the migrations left them.
	ErrChanged = errors.New("the schema agui was changed by hand")
	// ErrInstalledOtherwise means that another tool has run the migrations: there is no version table agui.schema_migrations.
	ErrInstalledOtherwise = errors.New("the schema agui was installed with another tool")
)

// SQLSTATEs.
const (
	noSuchSchema   = "3F000"
	noSuchFunction = "42883"
	noSuchTable    = "42P01"
)

// State is what a database holds of pgagui.
type State struct {
	// Version is the number of the last migration; 0: nothing is installed.
	Version uint
	// Latest is the number of the last migration that this program has.
	Latest uint
	// Fingerprint is the hash of the migrations that were run; empty: nothing says which.
	Fingerprint string
	// Expected is what Fingerprint is when the migrations up to Version are those of this program; empty: it has no such version.
	Expected string
	// Serves is the oldest version whose programs work with the schema. A program of version 2 works with a schema of version 3 that serves 2.
	Serves uint
	// OtherTool says that the migrations were run by another tool than golang-migrate and this package, or with another version table.
	OtherTool bool
	// Changes are the objects that are not as the migrations left them.
	Changes []Change
	// CatalogUnrecorded says that there is nothing to find changes by: no record of the catalog, or one of another major version of
	// PostgreSQL. Up makes one.
	CatalogUnrecorded bool
	// RowSecurity says that row-level security is on. It is false where there are Changes.
	RowSecurity bool

	isThere bool             // although nothing may say which version
	build   *migration.Build // of a database that is of another, unreleased build with tables that this program knows
}

// Change is a difference between an object and what the migrations made.
type Change struct {
	// Object is its kind and name: function agui.head(text, text).
	Object string `json:"object"`
	// Change is changed, missing or added.
	Change string `json:"change"`
}

// Status reads what a database holds. State.Problem says whether this program can work with it.
func Status(ctx context.Context, databaseURL string, options ...Option) (State, error) {
	settings, err := settingsOf(options)
	if err != nil {
		return State{}, err
	}
	connection, err := connect(ctx, databaseURL, settings)
	if err != nil {
		return State{}, err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	return settings.chain.readAll(ctx, connection)
}

// Database is a connection, a pool or a transaction.
type Database interface {
	QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row
}

// Check reports whether a database has the schema as this program has it, with one query. Errors are ErrNotInstalled, ErrOlder,
// ErrNewer, ErrUnreleased and ErrOtherBuild; others come from the connection.
func Check(ctx context.Context, database Database) error {
	state, err := versions().readInstalled(ctx, database)
	if err != nil {
		return err
	}
	return state.mismatch()
}

// readInstalled reads what the migrations have recorded.
func (c chain) readInstalled(ctx context.Context, database Database) (State, error) {
	state := State{Latest: c.latest()}
	err := database.QueryRow(ctx, `select version, fingerprint, serves from agui_internal.installed()`).Scan(&state.Version, &state.Fingerprint, &state.Serves)
	if err == nil {
		state.Expected = c.fingerprint(state.Version)
		state.isThere = true
		if state.Expected != "" && state.Fingerprint != state.Expected {
			state.build, err = c.readBuild(ctx, database)
		}
		return state, err
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != noSuchSchema && refusal.Code != noSuchFunction {
		return state, err
	}
	// A build from before there was a record. The log is what all have.
	err = database.QueryRow(ctx, `
		select exists (
			select
			from pg_catalog.pg_class as class
			join pg_catalog.pg_namespace as namespace
				on namespace.oid operator(pg_catalog.=) class.relnamespace
			where namespace.nspname operator(pg_catalog.=) 'agui' and class.relname operator(pg_catalog.=) 'batch')`).Scan(&state.isThere)
	return state, err
}

// readBuild reads which unreleased build a database is of; nil if it is of none, or of one with other tables.
func (c chain) readBuild(ctx context.Context, database Database) (*migration.Build, error) {
	var isUnreleased bool
	err := database.QueryRow(ctx, `select $1 operator(pg_catalog.=) any ((agui_internal.installed()).objects)`, migration.BuildObject).Scan(&isUnreleased)
	if err != nil || !isUnreleased {
		return nil, err
	}
	build := &migration.Build{}
	err = database.QueryRow(ctx, migration.BuildQuery).Scan(&build.Base, &build.BaseFingerprint, &build.Sources)
	if err != nil || !build.HasTablesOf(c) {
		return nil, err
	}
	return build, nil
}

// readState reads what the migrations have recorded, and by which tool, but not what was changed since.
func (c chain) readState(ctx context.Context, connection *pgx.Conn) (State, error) {
	state, err := c.readInstalled(ctx, connection)
	if err != nil || state.Version == 0 {
		return state, err
	}
	err = connection.QueryRow(ctx, `
		select not exists (
			select
			from pg_catalog.pg_class as class
			join pg_catalog.pg_namespace as namespace
				on namespace.oid operator(pg_catalog.=) class.relnamespace
			where namespace.nspname operator(pg_catalog.=) 'agui' and class.relname operator(pg_catalog.=) 'schema_migrations')`).Scan(&state.OtherTool)
	return state, err
}

// readAll is readState with the changes by hand.
func (c chain) readAll(ctx context.Context, connection *pgx.Conn) (State, error) {
	state, err := c.readState(ctx, connection)
	if err != nil || state.Version == 0 || state.Fingerprint != state.Expected && state.build == nil {
		return state, err
	}
	var recordsCatalog bool // version 1 does not
	err = connection.QueryRow(ctx, `
		select 'routine agui_internal.changed_objects' operator(pg_catalog.=) any ((agui_internal.installed()).objects)`).Scan(&recordsCatalog)
	if err != nil || !recordsCatalog {
		return state, err
	}
	state.Changes, state.CatalogUnrecorded, err = changedObjects(ctx, connection)
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && (refusal.Code == noSuchFunction || refusal.Code == noSuchTable) {
		state.Changes, err = []Change{{Object: "function agui_internal.changed_objects()", Change: "fails: " + refusal.Message}}, nil
	}
	if err != nil || len(state.Changes) > 0 { // functions that were changed cannot be relied on
		return state, err
	}
	err = connection.QueryRow(ctx, `select agui_internal.has_row_security()`).Scan(&state.RowSecurity)
	return state, err
}

func changedObjects(ctx context.Context, connection *pgx.Conn) (changes []Change, isUnrecorded bool, err error) {
	rows, err := connection.Query(ctx, `select object, change from agui_internal.changed_objects()`)
	if err != nil {
		return nil, false, err
	}
	if changes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Change]); err != nil {
		return nil, false, err
	}
	err = connection.QueryRow(ctx, `
		select not exists (
			select
			from agui_internal.installed_object
			where server_major operator(pg_catalog.=) (pg_catalog.current_setting('server_version_num')::int operator(pg_catalog./) 10000))`).
		Scan(&isUnrecorded)
	return changes, isUnrecorded, err
}

// Problem is what keeps this program from working with the database, and what to do about it: nil, or one of ErrNotInstalled,
// ErrOlder, ErrNewer, ErrUnreleased, ErrOtherBuild and ErrChanged.
func (s State) Problem() error {
	err := s.mismatch()
	if err == nil || errors.Is(err, ErrOlder) || errors.Is(err, ErrUnreleased) {
		if changed := s.changed(); changed != nil {
			return changed
		}
	}
	return err
}

// mismatch is Problem without the changes by hand.
func (s State) mismatch() error {
	switch {
	case s.Version == 0 && !s.isThere:
		return fmt.Errorf("%w: run pgagui migrate up", ErrNotInstalled)
	case s.Version > s.Latest && s.Serves <= s.Latest:
		return nil
	case s.Version > s.Latest:
		return fmt.Errorf("%w: it has version %d, this program has up to %d: use a newer program", ErrNewer, s.Version, s.Latest)
	case s.build != nil:
		return fmt.Errorf("%w: its version %d has the fingerprint %s, that of this program %s: run pgagui migrate up, which keeps the data",
			ErrUnreleased, s.Version, short(s.Fingerprint), short(s.Expected))
	case s.Fingerprint != s.Expected || s.Version == 0:
		return s.otherBuild()
	case s.Version < s.Latest:
		return fmt.Errorf("%w: it has version %d, this program needs %d: run pgagui migrate up", ErrOlder, s.Version, s.Latest)
	}
	return nil
}

func (s State) otherBuild() error {
	build := "nothing in it says which, and of which version"
	if s.Version > 0 {
		build = fmt.Sprintf("its version %d has the fingerprint %s, that of this program %s", s.Version, short(s.Fingerprint), short(s.Expected))
	}
	return fmt.Errorf("%w: %s: use the program that installed it, or export the threads with that program, then run pgagui migrate down and up",
		ErrOtherBuild, build)
}

// short is as much of a fingerprint as people compare.
func short(fingerprint string) string { return fingerprint[:min(12, len(fingerprint))] }

func (s State) changed() error {
	if len(s.Changes) == 0 {
		return nil
	}
	const shown = 5
	var objects []string
	for _, change := range s.Changes[:min(shown, len(s.Changes))] {
		objects = append(objects, change.Object+" ("+change.Change+")")
	}
	list := strings.Join(objects, ", ")
	if more := len(s.Changes) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%w since it was installed: %s: put back what pgagui migrate sql prints of these, or keep them with "+
		"pgagui migrate up --accept-changes", ErrChanged, list)
}
