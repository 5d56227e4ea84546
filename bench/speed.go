package bench

import (
	"cmp"
	"context"
	"encoding/json"
	_ "expvar" // the process of the server shows its allocations
	"fmt"
	"io"
	"net/http"
	_ "net/http/pprof" // and its profiles
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui/internal/memory"
)

// speed measures the events that package server passes on, as fast as agents send them, beside a plain
// reverse proxy. It says what CPU an event takes in each process, and how much the server allocates.
func (b *bench) speed(ctx context.Context) error {
	return b.withServer(ctx, func(s *served) error { return s.fullSpeed(ctx) })
}

func (s *served) fullSpeed(ctx context.Context) error {
	const runs = 8
	tokens := cmp.Or(s.Tokens, s.sizes.servedTokens*20)
	events := float64(runs * (tokens + 4))
	var spent notes
	passed := func(name, to string) side {
		return side{name, func(ctx context.Context) (float64, error) {
			before, err := s.spent(ctx)
			if err != nil {
				return 0, err
			}
			begin := time.Now()
			_, err = s.delaysOf(ctx, to, runs, 0, 0, pace{Tokens: tokens})
			taken := time.Since(begin)
			if err != nil {
				return 0, err
			}
			after, err := s.spent(ctx)
			if err != nil {
				return 0, err
			}
			// What sessions that have ended took is known to 10 ms, so a difference may be below zero.
			microseconds := func(d time.Duration) float64 { return float64(max(0, d.Nanoseconds())) / 1000 / events }
			spent.add(name+": CPU an event, server process", "µs", microseconds(after.server-before.server))
			spent.add(name+": CPU an event, database", "µs", microseconds(after.database-before.database))
			spent.add(name+": CPU an event, agents and clients", "µs", microseconds(after.clients-before.clients))
			spent.add(name+": allocations an event, server process", "", (after.Mallocs-before.Mallocs)/events)
			spent.add(name+": bytes allocated an event, server process", "bytes", (after.TotalAlloc-before.TotalAlloc)/events)
			return events / taken.Seconds(), nil
		}}
	}
	const proxy = "reverse proxy"
	what := fmt.Sprintf("%d agents at full speed", runs)
	ours := passed("pgagui", s.process.url+"/agent/paced/run")
	measured, err := s.rounds(ctx, what, ours, passed(proxy, s.process.url+"/proxy"))
	if err != nil {
		return err
	}
	s.report.add(Measurement{
		Phase: "speed", What: what, Unit: "events/s", Ours: Side{Name: "pgagui"}, Against: Side{Name: proxy}, Target: atLeast("S3", 0.25),
	}, measured["pgagui"], measured[proxy])
	s.report.addFigures("speed", spent)
	return s.profile(ctx, ours)
}

// spent is what processes have used so far.
type spent struct {
	server, database, clients time.Duration
	Mallocs, TotalAlloc       float64 // in the process of the server
}

func (s *served) spent(ctx context.Context) (used spent, err error) {
	used.server, used.clients = memory.Scheduled(s.process.pid), memory.Scheduled(os.Getpid())
	if postmaster, err := memory.Parent(int(s.server.connection.PgConn().PID())); err == nil { // otherwise it is on another machine
		used.database = memory.OfChildren(postmaster)
		for child := range strings.FieldsSeq(memory.Children(postmaster)) {
			if pid, err := strconv.Atoi(child); err == nil {
				used.database += memory.Scheduled(pid)
			}
		}
	}
	body, err := s.debug(ctx, "vars")
	if err != nil {
		return used, err
	}
	defer body.Close()
	return used, json.NewDecoder(body).Decode(&struct {
		Memstats *spent
	}{&used})
}

// debug opens a page of the process of the server.
func (s *served) debug(ctx context.Context, page string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.process.url+"/debug/"+page, nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.open(request)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// profile writes profiles of the process of the server, while a side is measured repeatedly.
func (s *served) profile(ctx context.Context, of side) error {
	if s.Profiles == "" {
		return nil
	}
	const seconds = 10
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for begin := time.Now(); time.Since(begin) < (seconds-1)*time.Second; {
			if _, err := of.measure(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	for _, name := range []string{"profile", "allocs"} {
		group.Go(func() error {
			body, err := s.debug(ctx, fmt.Sprintf("pprof/%s?seconds=%d", name, seconds))
			if err != nil {
				return err
			}
			defer body.Close()
			file, err := os.Create(filepath.Join(s.Profiles, name))
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = io.Copy(file, body)
			return err
		})
	}
	return group.Wait()
}
