package jobs

import (
	"context"
	"errors"
	"math"
	"runtime/debug"

	"golang.org/x/sync/semaphore"

	"github.com/pgagui/pgagui/compaction"
)

// This file bounds the memory of a job, whatever the size of threads and the number of workers.
//
// Each worker has a share of the memory of the job for its thread. If the thread needs more, the worker
// undoes its work, waits until no other worker has a thread, and starts it alone, with all of the
// memory. So no worker waits for another one while it holds memory itself.

const (
	// defaultMemory is the memory of a job if the process has no limit (GOMEMLIMIT).
	defaultMemory = 256 << 20
	// mostPageBytes and mostPageBatches bound a page of the log.
	mostPageBytes   = 16 << 20
	mostPageBatches = 250
)

// memory is the memory that the workers of a job may take together.
type memory struct {
	all   *semaphore.Weighted
	total int64
	share int64 // of each worker
}

// newMemory takes three quarters of the memory limit of the process, which leaves a quarter to the garbage and the rest of the program.
func newMemory(workers int) *memory {
	total := int64(defaultMemory)
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		total = limit / 4 * 3
	}
	return &memory{all: semaphore.NewWeighted(total), total: total, share: total / int64(workers)}
}

// errTooLarge means that a thread needs more memory than its worker has.
var errTooLarge = errors.New("the thread needs more memory than its worker has")

// do calls work with the share of a worker. If that is too little, it calls work alone, with all memory.
func (m *memory) do(ctx context.Context, work func(room) error) error {
	err := m.with(ctx, m.share, work)
	if errors.Is(err, errTooLarge) && m.share < m.total {
		err = m.with(ctx, m.total, work)
	}
	return err
}

func (m *memory) with(ctx context.Context, bytes int64, work func(room) error) error {
	if err := m.all.Acquire(ctx, bytes); err != nil {
		return err
	}
	defer m.all.Release(bytes)
	return work(room{bytes: bytes, isAll: bytes == m.total})
}

// room is the memory for a thread.
type room struct {
	bytes int64
	// isAll says that this is all of the memory.
	isAll bool
}

// pageBytes bounds a page of the log. Up to three of them are in memory: the one at hand, the next one, and what the driver is reading.
func (r room) pageBytes() int64 { return min(mostPageBytes, r.bytes/6) }

// mostBytes is how large a batch may be that is larger than a page.
func (r room) mostBytes() int64 {
	if r.isAll {
		return math.MaxInt64
	}
	return r.pageBytes()
}

// rest is the memory that is left for the folds.
func (r room) rest() int64 { return r.bytes - 3*r.pageBytes() }

// meter counts how much of its room a thread takes.
type meter struct {
	room room
	// isAlone says that the thread cannot be done with less memory: the meter then refuses nothing.
	isAlone bool

	// Bytes: of the folds when they were measured, of the events that they took in since, and of what is to be written.
	foldBytes, takenIn, unwritten int64
}

// took counts the bytes of events that folds took in. It fails with errTooLarge if there is no room for them.
func (m *meter) took(bytes int, folds func() []*compaction.Fold) error {
	m.takenIn += int64(bytes)
	// To write a text takes two copies of it.
	if m.isAlone || m.foldBytes+m.takenIn+2*m.unwritten <= m.room.rest() {
		return nil
	}
	m.foldBytes, m.takenIn = compaction.MemorySize(folds()...), 0
	// A quarter stays free. Otherwise folds that keep replacing most of their content would be measured at every call.
	if m.foldBytes+2*m.unwritten > m.room.rest()/4*3 {
		return errTooLarge
	}
	return nil
}
