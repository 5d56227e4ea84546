package crash

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pgagui/pgagui/internal/must"
)

// diskSize has room for a new server and all that a round writes.
const diskSize = "400m"

// disk is a small disk of a round's own.
type disk struct{ folder string }

// newDisk returns nil where this account may not mount one.
func newDisk(t testing.TB) *disk {
	t.Helper()
	folder := must.Have(os.MkdirTemp("", "pgagui-crash-"))(t)
	t.Cleanup(func() { _ = os.Remove(folder) })
	// The account that runs the server makes its folder there.
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "mode=1777,size="+diskSize); err != nil {
		t.Logf("full disks are left out, for no disk can be mounted: %v", err)
		return nil
	}
	t.Cleanup(func() {
		must.Report(t, syscall.Unmount(folder, syscall.MNT_DETACH))
	})
	return &disk{folder}
}

// fill leaves no byte free for a time.
func (d *disk) fill(t testing.TB, duration time.Duration) {
	t.Helper()
	path := filepath.Join(d.folder, "filler")
	file := must.Have(os.Create(path))(t)
	defer os.Remove(path)
	defer file.Close()
	chunk := make([]byte, 1<<20)
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for size := len(chunk); size > 0; {
			switch _, err := file.Write(chunk[:size]); {
			case errors.Is(err, syscall.ENOSPC):
				size /= 2
			case err != nil:
				t.Fatal(err)
			}
		}
	}
}
