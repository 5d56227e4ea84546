package pooler_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/address"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/pooler"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func TestClientsTakeTurnsOnFewConnections(t *testing.T) {
	t.Parallel()
	address := pooler.Start(t, testdb.Empty(t))
	const clients = 20
	served := make(map[int]bool)
	for range clients {
		connection := must.Have(pgx.Connect(t.Context(), address))(t)
		defer connection.Close(t.Context())
		var process int
		must.Do(t, connection.QueryRow(t.Context(), `select pg_backend_pid()`, pgx.QueryExecModeExec).Scan(&process))
		served[process] = true
	}
	if len(served) >= clients {
		t.Errorf("%d clients have connections of the server of their own", clients)
	}
}

func TestThreadsThroughThePooler(t *testing.T) {
	t.Parallel()
	config := must.Have(pgxpool.ParseConfig(pooler.Start(t, testdb.New(t))))(t)
	const writers, tokens = 32, 10
	config.MaxConns = writers
	pool := must.Have(address.NewPool(t.Context(), config))(t)
	defer pool.Close()
	store := pgagui.New(pool, nil)

	var group errgroup.Group
	for writer := range writers {
		group.Go(func() error { return converse(t, store, fmt.Sprint("thread-", writer), tokens) })
	}
	must.Report(t, group.Wait())
}

// converse appends a run token by token, and reads it back.
func converse(t *testing.T, store *pgagui.Store, threadID string, tokens int) error {
	ctx := t.Context()
	written := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED","runId":"r"}`)}
	var text strings.Builder
	for n := range tokens {
		token := fmt.Sprintf(`é%d `, n)
		text.WriteString(token)
		written = append(written, json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK", "messageId":"m", "delta":"%s"}`, token)))
	}
	written = append(written, json.RawMessage(`{"type":"RUN_FINISHED"}`))
	var seq int64
	for _, event := range written {
		var err error
		if seq, err = store.Append(ctx, pgagui.RunRef{ThreadID: threadID, RunID: "r"}, []json.RawMessage{event}, pgagui.AppendOptions{AfterSeq: new(seq)}); err != nil {
			return err
		}
	}

	var read int
	for event, err := range store.Events(ctx, threadID, pgagui.EventsOptions{}) {
		if err != nil {
			return err
		}
		if string(event.JSON) != string(written[read]) {
			return fmt.Errorf("event %d of %s is %s, want %s", event.Seq, threadID, event.JSON, written[read])
		}
		read++
	}
	if read != len(written) {
		return fmt.Errorf("%s has %d events, want %d", threadID, read, len(written))
	}
	restored, err := store.Restore(ctx, threadID, pgagui.At{})
	if err != nil {
		return err
	}
	if len(restored.Messages) != 1 || !strings.Contains(string(restored.Messages[0]), text.String()) {
		return fmt.Errorf("%s is restored as %s, want one message with %q", threadID, restored.Messages, text.String())
	}
	return nil
}

func TestPoolerEndsWithItsTest(t *testing.T) {
	t.Parallel()
	database := testdb.Empty(t)
	var address string
	t.Run("inner", func(t *testing.T) { address = pooler.Start(t, database) })
	if address == "" {
		t.SkipNow()
	}
	if _, err := pgx.Connect(t.Context(), address); err == nil {
		t.Error("the pooler still takes connections")
	}
}

// holdVariable names the database that TestHold starts a pooler for.
const holdVariable = "PGAGUI_TEST_HOLD_POOLER"

// TestHold is run by TestPoolerDiesWithItsProcess, in a process of its own: it holds a pooler until it is killed.
func TestHold(t *testing.T) {
	database := os.Getenv(holdVariable)
	if database == "" {
		t.SkipNow()
	}
	fmt.Println("\n" + pooler.Start(t, database))
	select {}
}

func TestPoolerDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	database := testdb.Empty(t)
	pooler.Start(t, database) // skips the test where there is no pooler
	holder := exec.Command(os.Args[0], "-test.run=^TestHold$")
	holder.Env = append(os.Environ(), holdVariable+"="+database)
	holder.Stderr = t.Output()
	output := must.Have(holder.StdoutPipe())(t)
	must.Do(t, holder.Start())
	lines := bufio.NewScanner(output)
	var address string
	for address == "" && lines.Scan() {
		if found, err := url.Parse(lines.Text()); err == nil && found.Scheme != "" {
			address = lines.Text()
		}
	}
	must.Do(t, holder.Process.Kill())
	_, _ = io.Copy(io.Discard, output)
	_ = holder.Wait() // reports the kill
	if address == "" {
		t.Fatal("the process that holds the pooler ended early")
	}
	wait.For(t, "the pooler takes no connections", func() bool {
		connection, err := pgx.Connect(t.Context(), address)
		if err == nil {
			connection.Close(t.Context())
		}
		return err != nil
	})
}
