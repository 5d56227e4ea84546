package bench

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pgagui/pgagui"
)

// read reads all events of a thread in order.
func (b *bench) read(ctx context.Context) error {
	conversations := b.everyday()[:2]
	thread := conversations[0]
	database, err := b.server.create(ctx, 2)
	if err != nil {
		return err
	}
	if err := database.load(ctx, 20, conversations...); err != nil {
		return err
	}
	if err := database.loadPlain(ctx, conversations...); err != nil {
		return err
	}
	if err := database.vacuum(ctx, append(logTables, "plain")...); err != nil {
		return err
	}

	const ours, plain = "pgagui", "plain table"
	what := fmt.Sprintf("read a thread of %d events", thread.Events())
	measured, err := b.rounds(ctx, what,
		timed(ours, func(ctx context.Context) error {
			for range b.sizes.reads {
				count := 0
				for _, err := range database.store.Events(ctx, thread.ThreadID, pgagui.EventsOptions{}) {
					if err != nil {
						return err
					}
					count++
				}
				if count != thread.Events() {
					return fmt.Errorf("read %d events of %d", count, thread.Events())
				}
			}
			return nil
		}),
		timed(plain, func(ctx context.Context) error {
			for range b.sizes.reads {
				rows, err := database.Query(ctx, "select seq, run_id, type, created_at, payload from plain where thread_id = $1 order by seq", thread.ThreadID)
				if err != nil {
					return err
				}
				count := 0
				for rows.Next() {
					var seq int64
					var runID, eventType string
					var createdAt any
					var payload json.RawMessage
					if err := rows.Scan(&seq, &runID, &eventType, &createdAt, &payload); err != nil {
						return err
					}
					count++
				}
				if err := rows.Err(); err != nil {
					return err
				}
				if count != thread.Events() {
					return fmt.Errorf("read %d events of %d", count, thread.Events())
				}
			}
			return nil
		}))
	if err != nil {
		return err
	}
	events := thread.Events() * b.sizes.reads
	b.report.add(Measurement{
		Phase: "read", What: what, Unit: "events/s", Ours: Side{Name: ours}, Against: Side{Name: plain},
	}, rates(measured[ours], events), rates(measured[plain], events))
	return database.drop(ctx)
}
