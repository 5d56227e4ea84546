package crash

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// startReads reads the threads of the writers until stop is called. Whatever is killed: no read is refused, because none of these
// threads is damaged. (Outages fail reads, and those of threads that have no run yet fail.)
func (r *round) startReads() (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	reads, refused := 0, map[string]bool{}
	var reader sync.WaitGroup
	reader.Go(func() {
		for ctx.Err() == nil {
			thread := r.threads[rand.IntN(len(r.threads))]
			_, err := r.pool.Exec(ctx, `select * from agui.restore($1)`, thread)
			if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && (refusal.Code == "UI022" || refusal.Code == "UI023") {
				refused[thread+": "+refusal.Message] = true
			}
			if err == nil {
				reads++
			}
		}
	})
	return func() {
		cancel()
		reader.Wait()
		for read := range refused {
			r.t.Errorf("a read was refused: thread %s", read)
		}
		r.counts["reads"] = reads
		if reads == 0 {
			r.t.Error("no thread was read")
		}
	}
}
