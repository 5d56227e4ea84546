package testdb

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// PeakMemory is how many bytes of memory a process of this machine has taken at most; 0: the system does not tell.
func PeakMemory(pid int) int64 { return memoryOf(pid, "VmHWM") }

// WatchMemory looks all the time at how much memory a server process has for itself, without the buffers that it shares with others. stop ends
// that and returns the most bytes it saw; 0: the server runs on another machine, or the system does not tell.
func WatchMemory(connection *pgx.Conn) (stop func() int64) {
	pid := int(connection.PgConn().PID())
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err != nil || string(name) != "postgres\n" {
		return func() int64 { return 0 }
	}
	isStopped, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			most = max(most, memoryOf(pid, "RssAnon"))
			select {
			case <-time.After(2 * time.Millisecond):
			case <-isStopped:
				peak <- most
				return
			}
		}
	}()
	return func() int64 {
		close(isStopped)
		return <-peak
	}
}

// memoryOf reads a line of what Linux says of a process.
func memoryOf(pid int, line string) (bytes int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, kilobytes, _ := strings.Cut(string(status), "\n"+line+":")
	if _, err := fmt.Sscan(kilobytes, &bytes); err != nil {
		return 0
	}
	return bytes << 10
}
