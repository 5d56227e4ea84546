package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
)

// audience is a process that follows threads, over a single connection.
type audience struct {
	stage    *stage
	pool     *pgxpool.Pool
	store    *pgagui.Store
	listener *pgx.Conn // receives notifications; nil if the audience only polls

	group     *errgroup.Group
	ctx       context.Context // of the followers; cancelled when one of them fails
	cancel    context.CancelFunc
	keepTimes bool
	followers []*follower
}

type follower struct {
	thread   int          // index of the thread
	seq      atomic.Int64 // seq of the last event that it received
	arrivals []arrival    // recorded with keepTimes
}

type arrival struct {
	seq int64
	at  time.Time
}

// gather creates an audience with a number of followers per thread. It returns when they have
// received the log up to its end. With keepTimes the followers record when events arrive.
func (s *stage) gather(ctx context.Context, by way, threads []string, each int, keepTimes bool) (a *audience, err error) {
	settings := s.Config()
	settings.MaxConns = 1
	a = &audience{stage: s, keepTimes: keepTimes}
	if a.pool, err = pgxpool.NewWithConfig(ctx, settings); err != nil {
		return nil, err
	}
	a.store = pgagui.New(a.pool, &pgagui.Config{PollInterval: by.interval})
	following, cancel := context.WithCancel(ctx)
	a.cancel = cancel
	a.group, a.ctx = errgroup.WithContext(following)
	if by.notified {
		err = a.listen(ctx)
	}
	if err == nil {
		err = a.join(ctx, threads, each)
	}
	if err != nil {
		return nil, errors.Join(err, a.leave())
	}
	return a, nil
}

// listen passes the notifications of the writers to the store.
func (a *audience) listen(ctx context.Context) error {
	threads := map[string]string{} // by key
	rows, err := a.stage.Query(ctx, "select thread_key::text, thread_id from agui.thread")
	if err != nil {
		return err
	}
	var key, thread string
	if _, err := pgx.ForEachRow(rows, []any{&key, &thread}, func() error { threads[key] = thread; return nil }); err != nil {
		return err
	}
	if a.listener, err = pgx.ConnectConfig(ctx, a.stage.Config().ConnConfig); err != nil {
		return err
	}
	if _, err := a.listener.Exec(ctx, "listen agui"); err != nil {
		return err
	}
	a.group.Go(func() error {
		for {
			notification, err := a.listener.WaitForNotification(a.ctx)
			if a.ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			a.store.Wake(threads[notification.Payload])
		}
	})
	return nil
}

// join adds followers. Each starts with the last event of its thread.
func (a *audience) join(ctx context.Context, threads []string, each int) error {
	ends, err := a.stage.ends(ctx, threads)
	if err != nil {
		return err
	}
	for thread, threadID := range threads {
		for range each {
			f := &follower{thread: thread}
			a.followers = append(a.followers, f)
			a.group.Go(func() error {
				options := pgagui.FollowOptions{After: pgagui.Position{Seq: ends[thread] - 1}, Stay: true}
				for event, err := range a.store.Follow(a.ctx, threadID, options) {
					if a.ctx.Err() != nil {
						return nil
					}
					if err != nil {
						return err
					}
					if a.keepTimes {
						f.arrivals = append(f.arrivals, arrival{event.Seq, time.Now()})
					}
					f.seq.Store(event.Seq)
				}
				return nil
			})
		}
	}
	return a.catchUp(ends)
}

// catchUp returns when all followers have received the events of each thread up to its seq in ends.
func (a *audience) catchUp(ends []int64) error {
	for _, f := range a.followers {
		for f.seq.Load() < ends[f.thread] {
			select {
			case <-time.After(time.Millisecond):
			case <-a.ctx.Done():
				return errors.Join(a.ctx.Err(), a.group.Wait())
			}
		}
	}
	return nil
}

// leave stops the followers. A second call does nothing.
func (a *audience) leave() error {
	a.cancel()
	err := a.group.Wait()
	if a.listener != nil {
		err = errors.Join(err, a.listener.Close(context.Background()))
		a.listener = nil
	}
	a.pool.Close()
	return err
}

// ends returns the last seqs of the threads.
func (s *stage) ends(ctx context.Context, threads []string) ([]int64, error) {
	rows, err := s.Query(ctx, `
		select (
			select batch.first_seq + batch.n - 1
			from agui.batch
			where batch.thread_key = agui.thread_key('', item.thread_id)
			order by batch.first_seq desc
			limit 1
		)
		from unnest($1::text[]) with ordinality as item (thread_id, number)
		order by item.number`, threads)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
