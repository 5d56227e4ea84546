package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/bench/corpus"
	"github.com/pgagui/pgagui/internal/memory"
)

// rest measures the reads of package server over HTTP: conversations and lists of threads at a fixed
// rate, and the memory of large answers for clients that do not read them.
func (b *bench) rest(ctx context.Context) (err error) {
	database, err := b.server.create(ctx, 4)
	if err != nil {
		return err
	}
	conversations := b.everyday()
	if err := database.load(ctx, 20, conversations...); err != nil {
		return err
	}
	if _, err := database.Exec(ctx, `call agui.compact()`); err != nil {
		return err
	}
	if err := database.vacuum(ctx, "agui.batch", "agui.run", "agui.message_version", "agui.snapshot", "agui.thread", "agui.thread_activity"); err != nil {
		return err
	}
	address, err := b.server.urlOf(database.name)
	if err != nil {
		return err
	}
	process, err := startServer(ctx, servedConfig{DatabaseURL: address, Agent: "http://127.0.0.1:1"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.stop()) }()
	if err := b.restReads(ctx, process, conversations); err != nil {
		return err
	}
	if err := b.slowReaders(ctx, process, database); err != nil {
		return err
	}
	if err := process.stop(); err != nil {
		return err
	}
	return database.drop(ctx)
}

// restReads makes requests at a fixed rate, conversations and lists by turns, whether or not earlier
// ones have been answered. Delays count from the time at which a request was due.
func (b *bench) restReads(ctx context.Context, process *servedProcess, conversations []corpus.Conversation) error {
	const clients = 64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	paths := []string{}
	for _, conversation := range conversations {
		paths = append(paths, "/threads/"+url.PathEscape(conversation.ThreadID)+"/conversation", "/threads?limit=20")
	}
	read := func(path string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, process.url+path, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: %s, %w", path, answer.Status, err)
		}
		return nil
	}
	var figures notes
	var rates, promised []float64
	for round := range 1 + b.Repeat {
		total := int(b.sizes.restRate * b.sizes.restFor.Seconds())
		due := make(chan int)
		var mu sync.Mutex
		var delays []float64
		begin := time.Now()
		var group errgroup.Group
		for range clients {
			group.Go(func() error {
				for i := range due {
					if err := read(paths[i%len(paths)]); err != nil {
						return err
					}
					delay := time.Since(begin.Add(time.Duration(float64(i) / b.sizes.restRate * float64(time.Second))))
					mu.Lock()
					delays = append(delays, float64(delay.Microseconds())/1000)
					mu.Unlock()
				}
				return nil
			})
		}
		failed := make(chan error, 1)
		go func() { failed <- group.Wait() }()
		for i := range total {
			time.Sleep(time.Until(begin.Add(time.Duration(float64(i) / b.sizes.restRate * float64(time.Second)))))
			select {
			case due <- i:
			case err := <-failed:
				return err
			}
		}
		close(due)
		if err := <-failed; err != nil {
			return err
		}
		figures.addDelays(fmt.Sprintf("%.0f reads/s of conversations and lists", b.sizes.restRate), delays)
		if round > 0 { // the first fills caches
			rates = append(rates, float64(total)/time.Since(begin).Seconds())
			promised = append(promised, b.sizes.restRate)
		}
	}
	b.report.add(Measurement{
		Phase: "rest", What: "reads over HTTP at a fixed rate", Unit: "requests/s",
		Ours: Side{Name: "pgagui"}, Against: Side{Name: "promised"}, Target: atLeast("R1", 0.99),
	}, rates, promised)
	b.report.addFigures("rest", figures)
	return nil
}

// slowReaders measures the memory of a server whose clients request large answers and do not read
// them.
func (b *bench) slowReaders(ctx context.Context, process *servedProcess, database *database) error {
	const limit = 512 << 20 // the budget of 256 MiB, and what is being read from the database
	state, err := json.Marshal(map[string]string{"document": strings.Repeat("x", b.sizes.slowAnswer)})
	if err != nil {
		return err
	}
	_, err = database.store.Append(ctx, pgagui.RunRef{ThreadID: "large", RunID: "run"}, []json.RawMessage{
		[]byte(`{"type":"RUN_STARTED"}`), []byte(`{"type":"STATE_SNAPSHOT","snapshot":` + string(state) + `}`), []byte(`{"type":"RUN_FINISHED"}`),
	}, pgagui.AppendOptions{})
	if err != nil {
		return err
	}
	address, err := url.Parse(process.url)
	if err != nil {
		return err
	}
	before := memory.Resident(process.pid)
	most := before
	refused := 0
	for range b.sizes.slowReaders {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address.Host)
		if err != nil {
			return err
		}
		defer connection.Close()
		if err := connection.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(connection, "GET /threads/large/conversation HTTP/1.1\r\nHost: %s\r\n\r\n", address.Host); err != nil {
			return err
		}
		first := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(connection, first); err != nil {
			return err
		}
		if string(first[9:]) == "503" {
			refused++
		}
		most = max(most, memory.Resident(process.pid))
	}
	b.report.add(Measurement{
		Phase: "rest", What: fmt.Sprintf("%d slow readers of %d MB, %d refused: memory of the server", b.sizes.slowReaders, b.sizes.slowAnswer>>20, refused), Unit: "bytes",
		Ours: Side{Name: "pgagui"}, Against: Side{Name: "promised"}, Target: atMost("R2", 1),
	}, []float64{float64(max(1, most-before))}, []float64{limit})
	return nil
}
