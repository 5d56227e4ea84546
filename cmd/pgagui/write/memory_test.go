package write

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/memory"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// peakWithInput runs pgagui as a process with the input that write writes. It returns the peak
// memory in megabytes, the exit code and stderr.
func peakWithInput(c clitest.CommandLine, write func(io.Writer), arguments ...string) (megabytes int64, code int, messages string) {
	c.T.Helper()
	if memory.Peak(os.Getpid()) == 0 {
		c.T.Skip("this system does not report the memory of a process")
	}
	process := c.Program(os.Args[0], arguments...)
	folder := c.T.TempDir()
	process.Env = append(process.Env, "GOMEMLIMIT=100MiB", "TMPDIR="+folder)
	var stderr strings.Builder
	process.Stderr = &stderr
	input := must.Have(process.StdinPipe())(c.T)
	must.Do(c.T, process.Start())
	go func() {
		defer input.Close()
		write(input)
	}()
	peak := int64(0)
	ended := make(chan error)
	go func() { ended <- process.Wait() }()
	for {
		select {
		case <-ended:
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				c.T.Errorf("temporary files are left: %v, error %v", left, err)
			}
			return peak >> 20, process.ProcessState.ExitCode(), stderr.String()
		case <-time.After(10 * time.Millisecond):
			peak = max(peak, memory.Peak(process.Process.Pid))
		}
	}
}

// The memory of an import does not grow with its file, for runs and events of any size.
func TestImportTakesConstantMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes minutes")
	}
	const limit = 128 // MB
	event := `{"type":"RAW","event":"` + strings.Repeat("0123456789abcdef", 250) + `"}` + "\n"
	for _, test := range []struct {
		name  string
		limit int64 // MB
		write func(io.Writer)
	}{
		{"many runs", limit, func(file io.Writer) {
			for run := range 240 {
				io.WriteString(file, clitest.Started("t", fmt.Sprint("r", run))+"\n"+strings.Repeat(event, 200)+clitest.Finished+"\n")
			}
		}},
		{"one run", limit, func(file io.Writer) {
			io.WriteString(file, clitest.Started("t", "r")+"\n")
			for range 240 {
				io.WriteString(file, strings.Repeat(event, 200))
			}
			io.WriteString(file, clitest.Finished+"\n")
		}},
		// An event of 8 MB is in memory several times: as it is read, checked and sent.
		{"large events", limit + 32, func(file io.Writer) {
			io.WriteString(file, clitest.Started("t", "r")+"\n")
			for range 8 {
				io.WriteString(file, `{"type":"RAW","event":"`+strings.Repeat("0123456789abcdef", 8<<16)+`"}`+"\n")
			}
			io.WriteString(file, clitest.Finished+"\n")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := clitest.NewCommandLine(t)
			peak, code, messages := peakWithInput(c, test.write, "import", "-")
			if code != cli.ExitOK {
				t.Fatalf("exit code %d: %s", code, messages)
			}
			if peak > test.limit {
				t.Errorf("it took %d MB, want %d at most", peak, test.limit)
			}
			t.Logf("%d MB", peak)
		})
	}
}

// The inputs of runs may each repeat the whole conversation.
func TestImportWithRequestsTakesConstantMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	const runs, limit = 30, 128 // MB
	c := clitest.NewCommandLine(t)
	requests := must.Have(os.Create(filepath.Join(t.TempDir(), "requests.ndjson")))(t)
	for run := range runs {
		fmt.Fprintf(requests, `{"threadId":"t","runId":"r%d","messages":[{"id":"m","role":"user","content":"%s"}]}`+"\n", run, strings.Repeat("question", 4<<17))
	}
	must.Do(t, requests.Close())
	peak, code, messages := peakWithInput(c, func(file io.Writer) {
		for run := range runs {
			io.WriteString(file, clitest.Started("t", fmt.Sprint("r", run))+"\n"+clitest.Finished+"\n")
		}
	}, "import", "--requests", requests.Name(), "-")
	if code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	if peak > limit {
		t.Errorf("it took %d MB, want %d at most", peak, limit)
	}
	t.Logf("%d MB", peak)
	pool := testdb.Connect(t, c.DatabaseURL)
	if inputs := testdb.Ask[int](t, pool, `select count(*) from agui.run_input where octet_length(input::text) > 4000000`); inputs != runs {
		t.Errorf("%d of %d runs have their inputs", inputs, runs)
	}
}

// The events that are held back until their run is known are bounded.
func TestEventsThatNoRunClaims(t *testing.T) {
	t.Parallel()
	c := clitest.NewCommandLine(t)
	event := `{"type":"RAW","event":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"
	interrupted := `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[]}}`
	peak, code, messages := peakWithInput(c, func(file io.Writer) {
		io.WriteString(file, clitest.Started("t", "r")+"\n"+interrupted+"\n")
		for range 100 {
			io.WriteString(file, event) // until the import stops reading
		}
	}, "import", "-")
	if want := "stdin:3: no RUN_STARTED follows RAW within 64 MB of events, so their run is unknown"; code != cli.ExitInput || !strings.Contains(messages, want) {
		t.Errorf("exit code %d, want %d; %q, want %q", code, cli.ExitInput, messages, want)
	}
	if peak > 200 {
		t.Errorf("it took %d MB", peak)
	}
}
