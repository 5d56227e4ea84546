//go:build !linux

package crash

import (
	"testing"
	"time"
)

// disk is a small disk of a round's own; here is none.
type disk struct{ folder string }

func newDisk(t testing.TB) *disk {
	t.Log("full disks are left out, for no disk can be mounted on this system")
	return nil
}

func (*disk) fill(testing.TB, time.Duration) {}
