package crash

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/pgagui/pgagui/internal/must"
)

// process is a writer or a follower.
type process struct {
	t       testing.TB
	name    string
	command *exec.Cmd
	input   io.Closer     // closed: it is told to finish
	drained chan struct{} // closed when all that it printed was heard
}

// finishTimeout is after how long a process that was told to finish counts as one that hangs.
const finishTimeout = 3 * time.Minute

// start starts a process and calls hear with each line that it prints, one after the other.
func start[Line any](t testing.TB, role, name string, task any, hear func(Line)) *process {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), roleVariable+"="+role)
	command.Stderr = t.Output()
	input := must.Have(command.StdinPipe())(t)
	output := must.Have(command.StdoutPipe())(t)
	must.Do(t, command.Start())
	p := &process{t: t, name: name, command: command, input: input, drained: make(chan struct{})}
	t.Cleanup(func() {
		_ = command.Process.Kill() // it has ended, unless the test failed
		<-p.drained
	})
	go func() {
		defer close(p.drained)
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			var line Line
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Errorf("%s printed %q: %v", name, lines.Text(), err)
				continue
			}
			hear(line)
		}
	}()
	if err := json.NewEncoder(input).Encode(task); err != nil {
		t.Fatalf("tell %s what to do: %v", name, err)
	}
	return p
}

// kill ends the process without a word to it.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	<-p.drained
	_ = p.command.Wait() // reports the kill
}

func (p *process) signal(signal syscall.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// finish tells the process to finish, and waits until it has.
func (p *process) finish() {
	p.t.Helper()
	_ = p.input.Close()
	select {
	case <-p.drained:
	case <-time.After(finishTimeout):
		p.signal(syscall.SIGQUIT) // prints what it is doing
		<-p.drained
		p.t.Errorf("%s was told to finish, and has not within %s", p.name, finishTimeout)
	}
	if err := p.command.Wait(); err != nil {
		p.t.Errorf("%s: %v", p.name, err)
	}
}
