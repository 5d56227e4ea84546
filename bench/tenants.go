package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/bench/corpus"
	"github.com/pgagui/pgagui/jobs"
)

// tenants compares calls with and without row-level security. With it, the caller is a role that is
// mapped to a scope, or a pool that sets the scope.
func (b *bench) tenants(ctx context.Context) (err error) {
	const scope = "acme"
	small, large := b.everyday()[1], b.corpus.Fifty(1, b.sizes.textInTokens/5, 4) // everyday()[0] has the thread id of Fifty(1)
	small.Runs = small.Runs[:1]
	asOwner := func() (*database, error) {
		database, err := b.server.create(ctx, 2)
		if err != nil {
			return nil, err
		}
		database.store = pgagui.New(database.Pool, &pgagui.Config{Scope: scope})
		if err := database.load(ctx, 20, small); err != nil {
			return nil, err
		}
		if _, err := jobs.Compact(ctx, database.Pool, jobs.CompactOptions{}); err != nil {
			return nil, err
		}
		if err := database.load(ctx, 20, large); err != nil { // without snapshots, so that a restore folds the log
			return nil, err
		}
		return database, database.vacuum(ctx, append(logTables, snapshotTables...)...)
	}
	b.Progress("tenants: load the threads")
	without, err := asOwner()
	if err != nil {
		return err
	}
	with, err := asOwner()
	if err != nil {
		return err
	}
	if _, err := with.Exec(ctx, `call agui.enable_row_security()`); err != nil {
		return err
	}

	type caller struct {
		name  string
		store *pgagui.Store
		pool  *pgxpool.Pool
	}
	var cleanUps []func() error
	defer func() {
		for _, cleanUp := range cleanUps {
			err = errors.Join(err, cleanUp())
		}
	}()
	connect := func(name string, database *database, mapping string, setsScope bool) (caller, error) {
		pool, cleanUp, err := database.asRole(ctx, mapping)
		cleanUps = append(cleanUps, cleanUp)
		return caller{name, pgagui.New(pool, &pgagui.Config{Scope: scope, SetScope: setsScope}), pool}, err
	}
	plain, err := connect("without", without, "", false)
	if err != nil {
		return err
	}
	role, err := connect("mapped role", with, `select agui.map_tenant('%s', '`+scope+`')`, false)
	if err != nil {
		return err
	}
	pool, err := connect("pool", with, `select agui.map_pool('%s')`, true)
	if err != nil {
		return err
	}

	bodies := b.bodies()
	// Many short slices, because the differences are small.
	const slices, calls = 20, 40
	repeating := func(c caller, calls int, call func(ctx context.Context) error) side {
		return repeated(c.name, calls, func(ctx context.Context, _ int) error { return call(ctx) })
	}
	appending := func(batch int, commit string) func(caller) side {
		return func(c caller) side {
			stream := newStreams(1, batch, bodies)[0]
			stream.threadID += strings.ReplaceAll(c.name, " ", "-") + commit
			all := repeating(c, calls, func(ctx context.Context) error {
				next := stream.next()
				_, err := c.store.Append(ctx, pgagui.RunRef{ThreadID: stream.threadID, RunID: next.runID}, next.events, pgagui.AppendOptions{})
				return err
			})
			return side{c.name, func(ctx context.Context) (float64, error) {
				if _, err := c.pool.Exec(ctx, `set synchronous_commit = `+commit); err != nil {
					return 0, err
				}
				return all.measure(ctx)
			}}
		}
	}
	restoring := func(thread corpus.Conversation, calls int) func(caller) side {
		return func(c caller) side {
			return repeating(c, calls, func(ctx context.Context) error {
				_, err := c.store.Restore(ctx, thread.ThreadID, pgagui.At{})
				return err
			})
		}
	}
	selecting := func(c caller) side {
		return repeating(c, calls, func(ctx context.Context) error {
			batch := &pgx.Batch{}
			if c.name == pool.name {
				batch.Queue(`select set_config('agui.scope', $1, true)`, scope)
			}
			batch.Queue(`select count(*) from agui.event where thread_key = agui.thread_key($1, $2)`, scope, small.ThreadID)
			return c.pool.SendBatch(ctx, batch).Close()
		})
	}
	for _, comparison := range []struct {
		what         string
		slices       int
		of           func(caller) side
		byRole, pool float64
	}{
		{"append 1 event a commit", slices / 2, appending(1, "on"), 1.1, 1.1},
		{"append 20 events a commit", slices / 2, appending(20, "on"), 1.1, 1.1},
		{"append 1 event, without waiting for the disk", slices, appending(1, "off"), 0, 0},
		{fmt.Sprintf("restore a thread of %d events", small.Events()), slices, restoring(small, calls), 1.25, 1.4},
		{fmt.Sprintf("restore a thread of %d events, without snapshots", large.Events()), slices / 2, restoring(large, 1), 1.1, 1.1},
		{fmt.Sprintf("select from agui.event, %d events", small.Events()), slices, selecting, 0, 0},
	} {
		measured, err := b.slicedRounds(ctx, comparison.what, comparison.slices, comparison.of(plain), comparison.of(role), comparison.of(pool))
		if err != nil {
			return err
		}
		for _, measure := range []struct {
			by     string
			target float64
		}{{role.name, comparison.byRole}, {pool.name, comparison.pool}} {
			measurement := Measurement{
				Phase: "tenants", What: comparison.what + ", " + measure.by, Unit: "ms",
				Ours: Side{Name: measure.by}, Against: Side{Name: plain.name},
			}
			if measure.target > 0 {
				measurement.Target = atMost("RLS", measure.target)
			}
			b.report.add(measurement, inMilliseconds(measured[measure.by]), inMilliseconds(measured[plain.name]))
		}
	}
	return errors.Join(without.drop(ctx), with.drop(ctx))
}

// asRole creates a role that may append and returns a connection of that role. mapping is a
// statement that maps the role, with %s for its name.
func (d *database) asRole(ctx context.Context, mapping string) (pool *pgxpool.Pool, cleanUp func() error, err error) {
	role := "pgagui_bench_" + strings.ToLower(rand.Text()[:8])
	if _, err := d.Exec(ctx, `create role `+role+` in role agui_writer`); err != nil {
		return nil, func() error { return nil }, err
	}
	cleanUp = func() error {
		if pool != nil {
			pool.Close()
		}
		_, err := d.server.connection.Exec(context.WithoutCancel(ctx), `drop role `+role)
		return err
	}
	if _, err := d.Exec(ctx, `grant `+role+` to current_user`); err != nil {
		return nil, cleanUp, err
	}
	if mapping != "" {
		if _, err := d.Exec(ctx, fmt.Sprintf(mapping, role)); err != nil {
			return nil, cleanUp, err
		}
	}
	config := d.Config().Copy()
	config.MaxConns = 1
	config.AfterConnect = func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, `set role `+role)
		return err
	}
	pool, err = pgxpool.NewWithConfig(ctx, config)
	return pool, cleanUp, err
}
