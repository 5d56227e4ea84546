package serve

import (
	"encoding/base64"
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

	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/memory"
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
