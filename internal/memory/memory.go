// Package memory says how much memory processes of this machine take, as Linux tells it; elsewhere all of it is 0.
package memory

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Peak is how many bytes a process has taken at most.
func Peak(pid int) int64 { return line(pid, "VmHWM") }

// ResetPeak lets Peak of this process begin anew.
func ResetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // where there is none Peak is 0
}

// WatchSessions looks all the time at processes of a PostgreSQL server. stop ends that and returns the most bytes that one of them had for
// itself, without the buffers that they share; 0: they run on another machine.
func WatchSessions(pids func() []int) (stop func() int64) {
	stopped, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			for _, pid := range pids() {
				if bytes := line(pid, "RssAnon"); bytes > most && isSession(pid) {
					most = bytes
				}
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-stopped:
				peak <- most
				return
			}
		}
	}()
	return func() int64 {
		close(stopped)
		return <-peak
	}
}

// isSession reports whether a process is one of a server. The server may run elsewhere, and its processes have other numbers here.
func isSession(pid int) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && strings.HasPrefix(string(name), "postgres")
}

// line reads a line of what the system says of a process.
func line(pid int, name string) (bytes int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, kilobytes, _ := strings.Cut(string(status), "\n"+name+":")
	if _, err := fmt.Sscan(kilobytes, &bytes); err != nil {
		return 0
	}
	return bytes << 10
}
