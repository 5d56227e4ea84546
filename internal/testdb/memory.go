package testdb

import (
	"fmt"
	"os"
	"strings"
)

// PeakMemory is how many bytes of memory a process of this machine has taken at most; 0: the system does not tell.
func PeakMemory(pid int) int64 { return memoryOf(pid, "VmHWM") }

// PrivateMemory is how many bytes of memory a process of this machine has for itself at the moment, without what it shares with others, as a
// server's processes share its buffers; 0: the system does not tell.
func PrivateMemory(pid int) int64 { return memoryOf(pid, "RssAnon") }

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
