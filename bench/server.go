package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/address"
	"github.com/pgagui/pgagui/sql/schema"
)

// server is the PostgreSQL server that is measured. Each phase creates its databases from a
// template that has the schema.
type server struct {
	connection *pgx.Conn
	url        string
	template   string
	databases  []*database
}

// database is a database of a phase.
type database struct {
	*pgxpool.Pool
	store  *pgagui.Store
	server *server
	name   string

	mu       sync.Mutex
	sessions []int
}

func openServer(ctx context.Context, databaseURL string) (s *server, err error) {
	config, err := address.Parse(databaseURL)
	if err != nil {
		return nil, err
	}
	connection, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	s = &server{connection: connection, url: databaseURL}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	name := "pgagui_bench_" + strings.ToLower(rand.Text()[:8])
	if _, err := connection.Exec(ctx, "create database "+name+" template template0 encoding 'UTF8'"); err != nil {
		return nil, err
	}
	s.template = name
	address, err := s.urlOf(name)
	if err != nil {
		return nil, err
	}
	return s, schema.Up(ctx, address)
}

// close drops the template and the remaining databases, even if the context of the benchmark has
// ended.
func (s *server) close() error {
	ctx := context.Background()
	var failures []error
	for _, database := range s.databases {
		failures = append(failures, database.drop(ctx))
	}
	if s.template != "" {
		_, err := s.connection.Exec(ctx, "drop database "+s.template)
		failures = append(failures, err)
	}
	return errors.Join(append(failures, s.connection.Close(ctx))...)
}

func (s *server) urlOf(database string) (string, error) {
	if !strings.Contains(s.url, "://") {
		return fmt.Sprintf("%s dbname=%s", s.url, database), nil
	}
	address, err := url.Parse(s.url)
	if err != nil {
		return "", errors.New("the address of the database is not a valid URL") // without the address, which may contain a password
	}
	address.Path = "/" + database
	return address.String(), nil
}

// machine describes where the benchmark runs.
func (s *server) machine(ctx context.Context) (Machine, error) {
	m := Machine{Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Settings: map[string]string{}}
	if err := s.connection.QueryRow(ctx, "show server_version").Scan(&m.PostgreSQL); err != nil {
		return Machine{}, err
	}
	for _, name := range []string{"fsync", "synchronous_commit", "shared_buffers", "jit"} {
		var value string
		if err := s.connection.QueryRow(ctx, "select current_setting($1)", name).Scan(&value); err != nil {
			return Machine{}, err
		}
		m.Settings[name] = value
	}
	return m, nil
}

// create creates a database with the schema, and a pool with this number of connections.
func (s *server) create(ctx context.Context, connections int) (*database, error) {
	return s.createFrom(ctx, s.template, connections)
}

func (s *server) createFrom(ctx context.Context, template string, connections int) (*database, error) {
	name := fmt.Sprintf("%s_%d", s.template, len(s.databases)+1)
	if _, err := s.connection.Exec(ctx, "create database "+name+" template "+template+" strategy file_copy"); err != nil {
		return nil, err
	}
	d := &database{server: s, name: name}
	s.databases = append(s.databases, d)
	return d, d.open(ctx, connections)
}

// copy copies a database.
func (s *server) copy(ctx context.Context, of *database) (*database, error) {
	connections := int(of.Config().MaxConns)
	of.Close() // PostgreSQL copies a database only while no session is connected to it
	copied, err := s.createFrom(ctx, of.name, connections)
	if err != nil {
		return nil, err
	}
	return copied, of.open(ctx, connections)
}

func (d *database) open(ctx context.Context, connections int) error {
	address, err := d.server.urlOf(d.name)
	if err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return err
	}
	config.MaxConns = int32(connections)
	config.AfterConnect = func(_ context.Context, connection *pgx.Conn) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.sessions = append(d.sessions, int(connection.PgConn().PID()))
		return nil
	}
	if d.Pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	d.store = pgagui.New(d.Pool, nil)
	return nil
}

// sessionsSoFar returns the server processes of all connections that the pool has had.
func (d *database) sessionsSoFar() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.sessions)
}

// url is the address of the database for peers.
func (d *database) url() (string, error) { return d.server.urlOf(d.name) }

// drop removes the database; a second call does nothing.
func (d *database) drop(ctx context.Context) error {
	if d.name == "" {
		return nil
	}
	if d.Pool != nil {
		d.Pool.Close()
	}
	_, err := d.server.connection.Exec(ctx, "drop database "+d.name+" with (force)")
	d.name = ""
	return err
}

// size returns the bytes on disk of tables with their indexes and TOAST tables, after a vacuum.
func (d *database) size(ctx context.Context, tables ...string) (float64, error) {
	total := 0.0
	for _, table := range tables {
		if _, err := d.Exec(ctx, "vacuum "+table); err != nil {
			return 0, err
		}
		var bytes int64
		if err := d.QueryRow(ctx, "select pg_total_relation_size($1::text::regclass)", table).Scan(&bytes); err != nil {
			return 0, err
		}
		total += float64(bytes)
	}
	return total, nil
}

// tableSize is what a table takes on disk.
type tableSize struct {
	name           string
	bytes, indexes float64 // of bytes
}

// tableSizes returns the sizes of all tables, and what they take together.
func (d *database) tableSizes(ctx context.Context) (tables []tableSize, total float64, err error) {
	for _, name := range allTables {
		table := tableSize{name: name}
		if err := d.QueryRow(ctx, "select pg_total_relation_size($1::text::regclass), pg_indexes_size($1::text::regclass)", name).Scan(&table.bytes, &table.indexes); err != nil {
			return nil, 0, err
		}
		tables = append(tables, table)
		total += table.bytes
	}
	return tables, total, nil
}

// addTables adds the sizes of tables to the report, by the runs or the bytes that they hold.
func (r *Report) addTables(phase, unit string, tables []tableSize, by float64) {
	for _, table := range tables {
		r.addFigure(phase, table.name, unit, table.bytes/by)
		r.addFigure(phase, "of it indexes", unit, table.indexes/by)
	}
}

// The tables of the log, of the snapshots folded from it, and these with the parts of inputs.
var (
	logTables      = []string{"agui.thread", "agui.run", "agui.batch", "agui.run_input", "agui.thread_activity"}
	snapshotTables = []string{"agui.snapshot", "agui.message_version"}
	allTables      = slices.Concat(logTables, snapshotTables, []string{"agui.input_part"})
)
