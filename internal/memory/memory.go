// Package memory measures the memory of processes of this machine. It needs Linux; elsewhere all results are 0.
package memory

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Peak returns the most bytes that a process has taken.
func Peak(pid int) int64 { return line(pid, "VmHWM") }

// Resident returns the resident memory of a process now, in bytes; 0 if it is unknown.
func Resident(pid int) int64 { return line(pid, "VmRSS") }

// ResetPeak resets the Peak of this process.
func ResetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // where there is none Peak is 0
}

// WatchSessions watches processes of a PostgreSQL server. stop ends that and returns the most private bytes of one of them,
// without shared buffers; 0 if they run on another machine.
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

// line reads a line of what /proc has of a process.
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
