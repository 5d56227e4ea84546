package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(into []byte) (int, error) { return f(into) }

// pageOf returns the text of a page.
func pageOf(t *testing.T, address string) string {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// The demo runs on a private server, which it removes after Enter was pressed.
func TestDemoOnAPrivateServer(t *testing.T) {
	t.Parallel()
	var out, messages bytes.Buffer
	var page string
	enter := readerFunc(func(into []byte) (int, error) { // the demo waits
		page = pageOf(t, regexp.MustCompile(`http://\S+/explorer/\S+`).FindString(out.String()))
		return copy(into, "\n"), nil
	})
	code := clitest.Run(t.Context(), []string{"demo", "--keep", "--database-url", ""}, enter, &out, &messages)
	if code != cli.ExitOK {
		t.Fatalf("exit code %d: %s\n%s", code, messages.String(), out.String())
	}
	checkDemo(t, out.String())
	if !strings.Contains(page, "Plan three days in Lisbon") || !strings.Contains(page, `class="from"`) {
		t.Errorf("the link of the explorer leads to\n%s", page)
	}

	address := regexp.MustCompile(`postgres://[^']+`).FindString(out.String())
	connection, err := pgx.Connect(t.Context(), address)
	if err == nil {
		connection.Close(t.Context())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting to %q afterwards: %v, want a refused connection", address, err)
	}
}

func TestDemoInADatabaseKeepsToItsScope(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, testdb.Empty(t))
	out := commands.Must("demo")
	checkDemo(t, out)
	if got := clitest.Parse[jobs.Verified](commands, "verify", "--scope", ""); got.Threads != 0 {
		t.Errorf("the demo left %d threads in the default scope", got.Threads)
	}
	scope := regexp.MustCompile(`pgagui-demo-\w+`).FindString(out)
	if got := clitest.Parse[jobs.Verified](commands, "verify", "--scope", scope); got.Threads != 4 {
		t.Errorf("scope %s has %d threads, want 4", scope, got.Threads)
	}
}

func checkDemo(t *testing.T, out string) {
	t.Helper()
	for _, want := range []string{
		"0 new, 178 already there",
		"* run-8 (head)",
		"attached in the middle of run-9",
		"Alfama is the oldest quarter",
		"stop requested: the agent and its follower ended",
		"no word lost or repeated",
		"a branch that continues from served-1",
		"the run of the first one ended",
		"17 runs folded",
		"waits for   approval: Book Casa do Miradouro",
		"booked Casa do Miradouro",
		"at most 100 a night, nothing booked",
		"4 threads, no problem",
		"the log as stored",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not say %q:\n%s", want, out)
		}
	}
	servers := regexp.MustCompile(`process +http://(\S+)`).FindAllStringSubmatch(out, -1)
	if len(servers) != 2 {
		t.Errorf("the demo names the servers %v", servers)
	}
	for _, server := range servers {
		if connection, err := net.Dial("tcp", server[1]); err == nil {
			connection.Close()
			t.Errorf("the server %s still listens", server[1])
		}
	}
}

// interrupter is a user who presses Ctrl-C when a text appears.
type interrupter struct {
	bytes.Buffer
	text      string
	interrupt context.CancelFunc
}

func (i *interrupter) Write(p []byte) (int, error) {
	n, err := i.Buffer.Write(p)
	if strings.Contains(i.String(), i.text) {
		i.interrupt()
	}
	return n, err
}

func TestDemoCanBeInterrupted(t *testing.T) {
	t.Parallel()
	database := testdb.Empty(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &interrupter{text: "Compact:", interrupt: cancel}
	var messages bytes.Buffer
	code := clitest.Run(ctx, []string{"demo", "--database-url", database}, strings.NewReader(""), out, &messages)
	if code != cli.ExitInterrupted || messages.String() != "pgagui: interrupted\n" {
		t.Errorf("exit code %d, messages %q", code, messages.String())
	}
	if strings.Contains(out.String(), "Verify:") {
		t.Errorf("the demo continued:\n%s", out.String())
	}
}
