package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pgagui/pgagui/internal/address"
)

// settle sets what a connection that migrates needs.
var settle = fmt.Sprintf("%s; set lock_timeout = %d", ownSettings, lockTimeout.Milliseconds())

var (
	// ErrUnsupported means that the server is too old, or the database not in UTF8.
	ErrUnsupported = errors.New("unsupported database")
	// ErrBusy means that other sessions kept tables of agui locked for longer than a migration waits.
	ErrBusy = errors.New("tables of agui are in use")
)

const (
	oldestServer = 15

	// migrationLock is the advisory lock that a migrating process holds.
	migrationLock = 0x61677569_6d696772 // "aguimigr"

	// lockTimeout is how long one try waits for a table lock, and keeps those waiting who come behind it; patience is how long
	// tries go on. Between tries is a pause, each longer than the one before, up to longestPause.
	lockTimeout  = 500 * time.Millisecond
	patience     = time.Minute
	longestPause = 4 * time.Second

	// ownSettings keep what others have planted in a schema of the role's search_path from being found, and the timeouts of the role
	// from ending a migration, or the session that holds its lock.
	ownSettings = "set search_path = pg_catalog, pg_temp; set statement_timeout = 0; set idle_session_timeout = 0; set idle_in_transaction_session_timeout = 0"
)

// Option changes what Up, Down and Status do.
type Option func(*settings)

type settings struct {
	chain         chain // without SQL
	sources       sources
	notice        func(string)
	acceptChanges bool
	force         bool
	deleteData    bool
	rowSecurity   *bool
	err           error
}

func settingsOf(options []Option) (*settings, error) {
	s := &settings{notice: func(string) {}}
	for _, option := range options {
		option(s)
	}
	if s.chain == nil {
		s.chain, s.sources = must(ofProgram()).Versions(), ofProgram
	}
	return s, s.err
}

// OnNotice is called with what the server notes while migrations run: roles that could not be made, for instance. Each is one line.
func OnNotice(notice func(text string)) Option { return func(s *settings) { s.notice = notice } }

// AcceptChanges makes Up go on where objects were changed by hand, and take them as they are from then on.
func AcceptChanges() Option { return func(s *settings) { s.acceptChanges = true } }

// RowSecurity makes Up turn row-level security on or off, as agui.enable_row_security() and agui.disable_row_security() do. Without it, it stays as
// it is.
func RowSecurity(on bool) Option { return func(s *settings) { s.rowSecurity = &on } }

// Force makes Down remove also what another tool has installed, and what comes from a build that left no record: then the schemas agui and
// agui_internal go with all that is in them.
func Force() Option { return func(s *settings) { s.force = true } }

// DeleteData makes Down remove the schemas also while conversations are stored.
func DeleteData() Option { return func(s *settings) { s.deleteData = true } }

// Up installs the schema, or upgrades it to the latest version. Then, or when there is nothing to upgrade, it makes roles and
// privileges that are missing: those of a database that was restored on another server, for instance. While another process
// migrates the same database it waits, until ctx ends. Use the address of the server itself: a pooler in transaction mode cannot
// keep a lock, and is refused.
func Up(ctx context.Context, databaseURL string, options ...Option) error {
	settings, err := settingsOf(options)
	if err != nil {
		return err
	}
	return withLock(ctx, databaseURL, settings, func(connection *pgx.Conn) error {
		if err := checkServer(ctx, connection); err != nil {
			return err
		}
		state, err := settings.chain.readAll(ctx, connection)
		if err != nil {
			return err
		}
		err = state.Problem()
		mayGoOn := err == nil || errors.Is(err, ErrNotInstalled) || errors.Is(err, ErrOlder) || errors.Is(err, ErrUnreleased) ||
			errors.Is(err, ErrChanged) && settings.acceptChanges
		if !mayGoOn {
			return err
		}
		if state.Version > 0 && state.Version < state.Latest && state.OtherTool {
			return fmt.Errorf("%w: it has version %d: add what is new to the migrations of that tool: pgagui migrate sql --from %d",
				ErrInstalledOtherwise, state.Version, state.Version)
		}
		switch {
		case state.build != nil:
			err = goOnFrom(ctx, databaseURL, settings, state)
		case state.Version > state.Latest:
			settings.notice(fmt.Sprintf("the schema has version %d, which serves this program of version %d too", state.Version, state.Latest))
		case state.Version == state.Latest:
			err = repair(ctx, connection, databaseURL, settings, state)
		default:
			err = upgrade(ctx, connection, databaseURL, settings, state.Version)
		}
		if err != nil || settings.rowSecurity == nil {
			return err
		}
		return setRowSecurity(ctx, connection, *settings.rowSecurity)
	})
}

// setRowSecurity turns row-level security on or off. It locks all tables, so it waits only briefly, and retries.
func setRowSecurity(ctx context.Context, connection *pgx.Conn, on bool) error {
	call, what := `call agui.enable_row_security()`, "on"
	if !on {
		call, what = `call agui.disable_row_security()`, "off"
	}
	err := untilLocked(ctx, func() error {
		return pgx.BeginFunc(ctx, connection, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `select set_config('lock_timeout', $1, true)`, fmt.Sprint(lockTimeout.Milliseconds())); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, call)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("turn row-level security %s: %w", what, err)
	}
	return nil
}

// upgrade runs the migrations after a version, each in a transaction: one, if there is none.
func upgrade(ctx context.Context, control *pgx.Conn, databaseURL string, settings *settings, version uint) (err error) {
	// Not "if not exists", which asks for the right to create schemas even when there is nothing to create.
	var exists bool
	if err := control.QueryRow(ctx, `select exists (select from pg_namespace where nspname = 'agui')`).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		if _, err := control.Exec(ctx, `create schema agui`); err != nil {
			return fmt.Errorf("create the schema agui: %w", err)
		}
	}
	migrations, err := settings.sources.chain(version)
	if err != nil {
		return err
	}
	engine, err := newEngine(databaseURL, settings, migrations)
	if err != nil {
		return err
	}
	defer func() {
		sourceErr, databaseErr := engine.Close()
		err = errors.Join(err, sourceErr, databaseErr)
	}()
	// What the migrations recorded is part of their transactions; the version table is not, and may be dirty.
	if err := engine.Force(engineVersion(version)); err != nil {
		return fmt.Errorf("set agui.schema_migrations to version %d: %w", version, readable(err))
	}
	for _, m := range migrations.after(version) {
		if err := runUp(ctx, engine, m.UpFile(), version); err != nil {
			return err
		}
		version = m.Version
	}
	return nil
}

// goOnFrom makes of an unreleased build the version of this program. Another tool records at most which number it has run, and that stays.
func goOnFrom(ctx context.Context, databaseURL string, settings *settings, state State) error {
	sources, err := settings.sources()
	if err != nil {
		return err
	}
	next, err := sources.From(*state.build)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOtherBuild, err)
	}
	connection, err := connect(ctx, databaseURL, settings)
	if err != nil {
		return err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	if _, err := connection.Exec(ctx, settle); err != nil {
		return err
	}
	err = untilLocked(ctx, func() error {
		_, err := connection.Exec(ctx, next.Up, pgx.QueryExecModeSimpleProtocol) // in one transaction
		return err
	})
	if err != nil {
		return fmt.Errorf("migration %s from another unreleased build: %w", next.UpFile(), namingDependents(err))
	}
	if state.OtherTool {
		return nil
	}
	return setVersion(databaseURL, settings, next.Version)
}

// setVersion sets the version table.
func setVersion(databaseURL string, settings *settings, version uint) (err error) {
	engine, err := newEngine(databaseURL, settings, nil)
	if err != nil {
		return err
	}
	defer func() {
		sourceErr, databaseErr := engine.Close()
		err = errors.Join(err, sourceErr, databaseErr)
	}()
	return readable(engine.Force(engineVersion(version)))
}

// engineVersion is how golang-migrate calls a version.
func engineVersion(version uint) int {
	if version == 0 {
		return database.NilVersion
	}
	return int(version)
}

// repair sees to what is beside the migrations of an install that has them all: the version table, the roles, the privileges and
// the record of the catalog. Only the owner can; for others there is nothing to do.
func repair(ctx context.Context, control *pgx.Conn, databaseURL string, settings *settings, state State) error {
	var isOwner bool
	err := control.QueryRow(ctx, `select pg_has_role(nspowner, 'usage') from pg_namespace where nspname = 'agui_internal'`).Scan(&isOwner)
	if err != nil || !isOwner {
		return err
	}
	if err := grantAccess(ctx, control, settings); err != nil {
		return fmt.Errorf("repair the privileges: %w", err)
	}
	if state.CatalogUnrecorded || len(state.Changes) > 0 {
		if _, err := control.Exec(ctx, `call agui_internal.record_objects()`); err != nil {
			return fmt.Errorf("record the catalog: %w", err)
		}
	}
	if state.OtherTool {
		return nil
	}
	var isRight bool
	err = control.QueryRow(ctx, `select coalesce((select version = $1 and not dirty from agui.schema_migrations), false)`, state.Version).
		Scan(&isRight)
	if err != nil || isRight {
		return err
	}
	return setVersion(databaseURL, settings, state.Version)
}

// grantAccess creates the roles and the privileges that are missing, and says which.
func grantAccess(ctx context.Context, control *pgx.Conn, settings *settings) error {
	const rolesThere = `
		select array(select rolname::text from pg_roles where rolname in (
			'agui_reader', 'agui_writer', 'agui_worker', 'agui_maintainer', 'agui_recorder', 'agui_diagnoser'
		) order by rolname)`
	var before, after []string
	var changes int
	err := control.QueryRow(ctx, rolesThere).Scan(&before)
	if err == nil {
		err = control.QueryRow(ctx, `select count(*) from agui_internal.privilege_changes()`).Scan(&changes)
	}
	if err == nil {
		_, err = control.Exec(ctx, `call agui.grant_access()`)
	}
	if err == nil {
		err = control.QueryRow(ctx, rolesThere).Scan(&after)
	}
	if err != nil {
		return err
	}
	created := slices.DeleteFunc(after, func(role string) bool { return slices.Contains(before, role) })
	switch {
	case len(created) > 0:
		settings.notice(fmt.Sprintf("created the roles %s, and gave them their privileges", strings.Join(created, ", ")))
	case changes > 0:
		settings.notice("completed the privileges of the roles")
	}
	return nil
}

// withLock calls the function with a connection that holds the lock for migrations.
func withLock(ctx context.Context, databaseURL string, settings *settings, work func(*pgx.Conn) error) error {
	connection, err := connect(ctx, databaseURL, settings)
	if err != nil {
		return err
	}
	defer connection.Close(context.WithoutCancel(ctx)) // releases the lock
	if err := address.CheckSession(ctx, connection); err != nil {
		return fmt.Errorf("lock the database for migrations: %w", err)
	}
	if _, err := connection.Exec(ctx, ownSettings); err != nil {
		return err
	}
	if err := lock(ctx, connection); err != nil {
		return err
	}
	return work(connection)
}

func connect(ctx context.Context, databaseURL string, settings *settings) (*pgx.Conn, error) {
	config, err := parse(databaseURL, settings)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

func parse(databaseURL string, settings *settings) (*pgx.ConnConfig, error) {
	config, err := address.Parse(databaseURL)
	if err != nil {
		return nil, err
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "pgagui migrate"
	}
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		text := notice.Message
		for _, more := range []string{notice.Detail, notice.Hint} {
			if more != "" {
				text += ". " + more
			}
		}
		settings.notice(text)
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
	errLocked := errors.New("another process migrates the database")
	isLocked := false
	_, err := backoff.Retry(ctx, func() (got bool, err error) {
		if err := connection.QueryRow(ctx, `select pg_try_advisory_lock($1)`, int64(migrationLock)).Scan(&got); err != nil {
			return false, backoff.Permanent(fmt.Errorf("lock the database for migrations: %w", err))
		}
		if isLocked = !got; isLocked {
			return false, errLocked
		}
		return true, nil
	}, backoff.WithBackOff(pauses(100*time.Millisecond, 100*time.Millisecond)), backoff.WithMaxElapsedTime(0))
	if err != nil && isLocked {
		return fmt.Errorf("%w: %w", errLocked, err)
	}
	return err
}

// pauses between tries become longer, up to about the longest. They differ, so that processes that began together spread out.
func pauses(first, longest time.Duration) backoff.BackOff {
	return &backoff.ExponentialBackOff{InitialInterval: first, Multiplier: 2, MaxInterval: longest, RandomizationFactor: 0.5}
}

// newEngine sets golang-migrate up with migrations, and the version table in the schema agui.
func newEngine(databaseURL string, settings *settings, migrations chain) (*migrate.Migrate, error) {
	config, err := parse(databaseURL, settings)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, settle)
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
	source, err := iofs.New(migrations.files(), ".")
	if err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	return migrate.NewWithInstance("iofs", source, "pgx5", driver)
}

// runUp runs the next migration, up from the version that the database has.
func runUp(ctx context.Context, engine *migrate.Migrate, name string, version uint) error {
	err := untilLocked(ctx, func() error {
		err := readable(engine.Steps(+1))
		if _, ok := errors.AsType[*pgconn.PgError](err); ok {
			// The server refused, so it has rolled the whole file back, and nothing is dirty.
			if cleanErr := engine.Force(engineVersion(version)); cleanErr != nil {
				return fmt.Errorf("%w; and agui.schema_migrations is dirty: %w", err, readable(cleanErr))
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("migration %s: %w", name, namingDependents(err))
	}
	return nil
}

// namingDependents adds to the refusal to drop an object what of others depends on it.
func namingDependents(err error) error {
	const dependentObjectsStillExist = "2BP01"
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != dependentObjectsStillExist {
		return err
	}
	return fmt.Errorf("%w: %s: drop what depends on it first; nothing was changed", err, strings.ReplaceAll(refusal.Detail, "\n", ", "))
}

// untilLocked repeats what fails because other sessions hold locks, with the patience that a migration has.
func untilLocked(ctx context.Context, try func() error) error {
	const (
		lockNotAvailable = "55P03"
		deadlockDetected = "40P01"
	)
	isBusy := false
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := try()
		var refusal *pgconn.PgError
		isBusy = errors.As(err, &refusal) && (refusal.Code == lockNotAvailable || refusal.Code == deadlockDetected)
		if err != nil && !isBusy {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses(lockTimeout/4, longestPause)), backoff.WithMaxElapsedTime(patience))
	switch {
	case err == nil || !isBusy:
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
	default:
		return fmt.Errorf("%w: other sessions held locks for %s: repeat it when long transactions have ended", ErrBusy, patience)
	}
}

// readable makes one line of an error of golang-migrate, which quotes the whole migration.
func readable(err error) error {
	var failure database.Error
	if pointer, ok := errors.AsType[*database.Error](err); ok {
		failure = *pointer
	} else if !errors.As(err, &failure) {
		return err
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](failure.OrigErr); ok && refusal.Position > 0 {
		return fmt.Errorf("line %d: %w", failure.Line, refusal)
	}
	return failure.OrigErr
}
