package bench

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/pgagui/pgagui/internal/memory"
)

// cpu counts the processor time of sides beside their figures: of the sessions of a database and of the process of the benchmark. Other
// work on the machine changes it less than the time.
type cpu struct {
	database *database
	taken    figures // µs a unit
}

func cpuOf(database *database) *cpu { return &cpu{database, figures{}} }

// count counts what work takes for each of the units that it processes.
func (c *cpu) count(name string, work func() (units float64, err error)) error {
	before := c.now()
	units, err := work()
	if err == nil {
		c.taken[name] = append(c.taken[name], float64((c.now()-before).Nanoseconds())/1000/units)
	}
	return err
}

// rate counts the CPU of a side whose figure is units a second.
func (c *cpu) rate(s side) side {
	return side{s.name, func(ctx context.Context) (rate float64, err error) {
		err = c.count(s.name, func() (float64, error) {
			begun := time.Now()
			rate, err = s.measure(ctx)
			return rate * time.Since(begun).Seconds(), err
		})
		return rate, err
	}}
}

// timed is a side measured in seconds, and in CPU for each of its units.
func (c *cpu) timed(name string, units int, work func(context.Context) error) side {
	return timed(name, func(ctx context.Context) error {
		return c.count(name, func() (float64, error) { return float64(units), work(ctx) })
	})
}

func (c *cpu) now() (taken time.Duration) {
	for _, process := range append(c.database.sessionsSoFar(), os.Getpid()) {
		taken += memory.Scheduled(process)
	}
	return taken
}

// add adds what two sides took to the report, the mean of each round without the first, which is a warm-up. If the server runs on another
// machine, it adds nothing.
func (c *cpu) add(report *Report, m Measurement, slicesARound int) {
	if memory.Scheduled(c.database.sessionsSoFar()[0]) == 0 {
		return
	}
	m.What, m.Unit = m.What+": CPU", "µs/event"
	report.add(m, means(c.taken[m.Ours.Name], slicesARound)[1:], means(c.taken[m.Against.Name], slicesARound)[1:])
}

// means returns the mean of each n values.
func means(values []float64, n int) (means []float64) {
	for round := range slices.Chunk(values, n) {
		sum := 0.0
		for _, value := range round {
			sum += value
		}
		means = append(means, sum/float64(n))
	}
	return means
}
