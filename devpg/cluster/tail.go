package cluster

import (
	"strings"
	"sync"
)

// tail keeps the end of a program's output, for error messages.
type tail struct {
	mutex sync.Mutex
	text  string
}

const tailSize = 8 << 10

// Write implements io.Writer.
func (t *tail) Write(output []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.text += string(output)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(output), nil
}

// String implements fmt.Stringer.
func (t *tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.text
}

// reason returns why the program failed: the first line that reports an error with the one before it, which has the cause
// when a configuration file is wrong; or else the last line.
func (t *tail) reason() string {
	lines := strings.Split(strings.TrimSpace(t.String()), "\n")
	for i, line := range lines {
		for _, severity := range []string{"FATAL:", "PANIC:", "error:"} {
			if strings.Contains(line, severity) {
				return strings.Join(lines[max(0, i-1):i+1], "; ")
			}
		}
	}
	return lines[len(lines)-1]
}
