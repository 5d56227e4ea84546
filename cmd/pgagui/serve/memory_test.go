package serve

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/memory"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// The memory of a server is bounded, although several clients send bodies that are as large as can be.
func TestMemoryOfLargeBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const limit = 640 // MB: a busy machine collects later
	c := clitest.NewCommandLine(t)
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	first, second := c.Token(tokens, "first", "acme", "read,write"), c.Token(tokens, "second", "acme", "read,write")
	process := c.Program(os.Args[0], "serve", "--listen", "127.0.0.1:0", "--json", "--agent", "assistant="+clitest.NewSample(t), "--token-file", tokens)
	process.Env = append(process.Env, "GOMEMLIMIT=512MiB")
	s := clitest.Serving(t, clitest.StartProcess(t, process))
	noise := make([]byte, (63<<20-1000)*3/4)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	image := base64.StdEncoding.EncodeToString(noise)

	var posts sync.WaitGroup
	for i, token := range []string{first, second} {
		posts.Go(func() {
			thread := fmt.Sprint("thread-", i)
			sendUntilTaken(t, token, s.URL+"/agent/assistant/run", clitest.RunInput(thread, "r", image), "RUN_FINISHED")
		})
	}
	posts.Go(func() {
		sendUntilTaken(t, second, s.URL+"/threads/appended/runs/r/events", `{"events":[`+clitest.Started("appended", "r")+`,{"type":"RAW","event":"`+image+`"}]}`, "lastSeq")
	})
	posts.Wait()
	if peak := memory.Peak(s.Process.Pid) >> 20; peak > limit {
		t.Errorf("it took %d MB, want %d at most", peak, limit)
	} else {
		t.Logf("%d MB", peak)
	}
	s.Terminate(t)
	s.End(t)
}

// A server sends a history of 100 MB with the memory of a part of it.
func TestMemoryOfALargeHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const limit = 64 // MB beyond what an idle server takes
	c := clitest.NewCommandLine(t)
	pool := testdb.Connect(t, c.DatabaseURL)
	store := pgagui.New(pool, nil)
	testdb.Exec(t, pool, `select agui.set_setting('fold_bytes', '256 MB')`)
	run := pgagui.RunRef{ThreadID: "t", RunID: "r"}
	events := []json.RawMessage{json.RawMessage(clitest.Started("t", "r"))}
	for i := range 100 {
		events = append(events,
			fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_START","messageId":"m%d","role":"assistant"}`, i),
			fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m%d","delta":%q}`, i, strings.Repeat("x", 1_000_000)),
			fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_END","messageId":"m%d"}`, i))
		if i == 99 {
			events = append(events, json.RawMessage(`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`))
		}
		must.Have(store.Append(t.Context(), run, events, pgagui.AppendOptions{}))(t)
		events = nil
	}
	testdb.Exec(t, pool, "call agui.compact()")
	s := clitest.Serving(t, clitest.StartProcess(t, c.Program(os.Args[0], "serve", "--listen", "127.0.0.1:0", "--json", "--agent", "assistant="+clitest.NewSample(t), "--insecure")))
	get := func(path string) int {
		answer := must.Have(http.Get(s.URL + path))(t)
		defer answer.Body.Close()
		size := must.Have(io.Copy(io.Discard, answer.Body))(t)
		return int(size)
	}
	get("/threads/t")
	idle := memory.Peak(s.Process.Pid) >> 20
	began := time.Now()
	size := get("/threads/t/events?protocol_version=1.0")
	peak := memory.Peak(s.Process.Pid) >> 20
	if size < 100_000_000 || peak-idle > limit {
		t.Errorf("a history of %d bytes took %d MB beside the %d MB of an idle server, want %d at most", size, peak-idle, idle, limit)
	}
	t.Logf("%d MB beside %d MB, in %s", peak-idle, idle, time.Since(began).Round(time.Second))
	s.Terminate(t)
	s.End(t)
}

// Eight readers at once of lists that are a multiple of the memory take its bound, and what the process needs anyway. The tests of
// packages server and explorer find the endpoints; these are the ones whose documents a list has in full.
func TestMemoryOfLists(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const (
		size, rows    = 2_000_000, 20
		budget, limit = 64, 64 + 64 // MB
	)
	c := clitest.NewCommandLine(t)
	testdb.FillLarge(t, testdb.Connect(t, c.DatabaseURL), rows, size)
	process := c.Program(os.Args[0], "serve", "--listen", "127.0.0.1:0", "--json", "--agent", "assistant="+clitest.NewSample(t), "--insecure",
		"--limits-requests-per-second", "-1", "--max-buffered-bytes", fmt.Sprint(budget<<20))
	process.Env = append(process.Env, fmt.Sprintf("GOMEMLIMIT=%dMiB", budget+16)) // the program itself does not count
	s := clitest.Serving(t, clitest.StartProcess(t, process))
	for _, path := range []string{
		"/threads/large/history?limit=1000&raw=true", "/threads/large/last-events?limit=1000", "/threads/large/session-state", "/threads/large/session-state/key/versions",
		"/threads/large/checkpoints", "/threads/large/checkpoints/c20/lineage", "/api/ambient/v1/sessions/large/events/history",
		"/explorer/log?runs=all&raw=1&id=large", "/explorer/ndjson?runs=all&id=large", "/explorer/ndjson?whole=1&run=run-2&id=large", "/explorer/times?id=large",
	} {
		var requests sync.WaitGroup
		for range 8 {
			requests.Go(func() {
				answer, err := http.Get(s.URL + path)
				if err != nil {
					t.Errorf("%s: %v", path, err)
					return
				}
				defer answer.Body.Close()
				if _, err := io.Copy(io.Discard, answer.Body); err != nil {
					t.Errorf("%s: %v", path, err)
				}
				switch answer.StatusCode {
				case http.StatusOK, http.StatusUnprocessableEntity, http.StatusServiceUnavailable:
				default:
					t.Errorf("%s: %s", path, answer.Status)
				}
			})
		}
		requests.Wait()
		t.Logf("%s: %d MB", path, memory.Peak(s.Process.Pid)>>20)
	}
	if peak := memory.Peak(s.Process.Pid) >> 20; peak > limit {
		t.Errorf("it took %d MB, want %d at most", peak, limit)
	}
	s.Terminate(t)
	s.End(t)
}

// sendUntilTaken sends a request, repeatedly while there is no memory for it. The answer has the text want.
func sendUntilTaken(t *testing.T, token, url, body, want string) {
	for {
		request, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		switch {
		case answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") != "":
			time.Sleep(time.Second)
		case answer.StatusCode != http.StatusOK || err != nil || !strings.Contains(string(text), want):
			t.Errorf("%s: %s %.300q, %v", url, answer.Status, text, err)
			return
		default:
			return
		}
	}
}
