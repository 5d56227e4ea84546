package testdb

import (
	"fmt"
	"os"
	"strings"
)

// PeakMemory is how many bytes of memory a process of this machine has taken at most, with what it shares with others; 0: the system does not tell.
func PeakMemory(pid int) (bytes int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, peak, _ := strings.Cut(string(status), "\nVmHWM:")
	if _, err := fmt.Sscan(peak, &bytes); err != nil {
		return 0
	}
	return bytes << 10
}
