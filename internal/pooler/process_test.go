package pooler

import (
	"os/exec"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
)

// A pooler that ends by itself is restarted; one that the test stops is not.
func TestAProcessThatEndsIsStartedOnceMore(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 10)
	t.Run("", func(t *testing.T) {
		p := &process{t: t, begin: func() *exec.Cmd { begun <- struct{}{}; return exec.Command("sleep", "1000") }}
		first := p.run()
		<-begun
		go p.restart()
		must.Do(t, p.command.Process.Kill())
		<-first
		<-begun
	})
	if len(begun) > 0 {
		t.Error("it was started after the end of the test")
	}
}
