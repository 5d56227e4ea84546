// Package memory measures the memory and the work of processes of this machine. It needs Linux; elsewhere all results of memory are 0.
package memory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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
				if size := line(pid, "RssAnon"); size > most && isSession(pid) {
					most = size
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

// CPU is the time that a process has spent in its own code, to 10 ms; negative: unknown. Other processes of a busy machine do not count.
// Nor does the kernel: its time depends on whether the C library happens to return memory after each use, a page fault for each page of
// a large text.
func CPU(pid int) time.Duration { return ticks(pid, 11) }

// OfChildren is the time of those children of a process that have ended, in their own code and in the kernel, to 20 ms.
func OfChildren(pid int) time.Duration { return ticks(pid, 13) + ticks(pid, 14) }

// Children lists the processes that a process has started and that have not ended; "": unknown.
func Children(pid int) string {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return ""
	}
	return string(list)
}

// Parent returns the process that started another.
func Parent(pid int) (int, error) {
	number, err := strconv.Atoi(statistic(pid, 1))
	if err != nil {
		return 0, fmt.Errorf("process %d: its parent is unknown: %w", pid, err)
	}
	return number, nil
}

// Scheduled is the time that the threads of a process have had on a processor, in its own code and in the kernel, without those that
// have ended; 0: unknown.
func Scheduled(pid int) (taken time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is valid
	for _, thread := range threads {
		text, _ := os.ReadFile(thread)
		var ofThread time.Duration
		if _, err := fmt.Sscan(string(text), &ofThread); err == nil {
			taken += ofThread
		}
	}
	return taken
}

// ticks reads a statistic that counts ticks, of which Linux makes 100 a second; negative: unknown.
func ticks(pid, field int) time.Duration {
	count, err := strconv.Atoi(statistic(pid, field))
	if err != nil {
		return -1
	}
	return time.Duration(count) * 10 * time.Millisecond
}

// statistic reads a field of /proc/PID/stat, counted from 0 behind the name of the process; "": unknown.
func statistic(pid, field int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name, in parentheses, may have spaces.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= field {
		return ""
	}
	return fields[field]
}

// isSession reports whether a process is one of a server. The server may run elsewhere, and its processes have other numbers here.
func isSession(pid int) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && strings.HasPrefix(string(name), "postgres")
}

// line reads a line of what /proc has of a process.
func line(pid int, name string) (size int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, kilobytes, _ := strings.Cut(string(status), "\n"+name+":")
	if _, err := fmt.Sscan(kilobytes, &size); err != nil {
		return 0
	}
	return size << 10
}
