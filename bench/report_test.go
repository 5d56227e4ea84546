package bench

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
)

func TestRatiosAreTakenPairByPair(t *testing.T) {
	t.Parallel()
	var report Report
	// On a busy machine both sides of a pair slow down, as in the second pair: the ratio stays.
	report.add(Measurement{What: "a", Target: atLeast("1", 2)}, []float64{200, 20, 210}, []float64{100, 10, 100})
	report.add(Measurement{What: "b", Target: atMost("2", 0.5)}, []float64{3, 4}, []float64{5, 5})
	report.add(Measurement{What: "c", Target: atMost("3", 0.7)}, []float64{3, 4}, []float64{5, 5})
	report.add(Measurement{What: "d"}, []float64{1}, []float64{8})

	if got, want := report.Measurements[0].Ratio, (Spread{2, 2, 2.1}); got != want {
		t.Errorf("ratio %v, want %v", got, want)
	}
	if got := report.Measurements[1].Ratio.Median; got < 0.69 || got > 0.71 {
		t.Errorf("the median of two is %v, want the mean", got)
	}
	if got := report.Measurements[0].Ours.Median; got != 200 {
		t.Errorf("the median of the figures is %v", got)
	}
	for i, reached := range []bool{true, false, true} {
		if report.Measurements[i].Target.Reached != reached {
			t.Errorf("measurement %d: reached is %v", i, !reached)
		}
	}
	if report.Missed() != 1 {
		t.Errorf("%d targets missed, want 1", report.Missed())
	}
}

func TestTableSaysWhatWasReached(t *testing.T) {
	t.Parallel()
	report := Report{Repeat: 2, Machine: Machine{PostgreSQL: "18.1", Settings: map[string]string{"jit": "on", "fsync": "on"}}}
	report.add(Measurement{What: "write", Unit: "events/s", Against: Side{Name: "rows"}, Target: atLeast("1", 2)}, []float64{123456, 123456}, []float64{50000, 40000})
	report.add(Measurement{What: "keep", Unit: "bytes", Against: Side{Name: "rows"}, Target: atMost("2", 1.0/6)}, []float64{50}, []float64{100})
	var waits notes
	for _, wait := range []float64{1000, 3, 1.5, 12} {
		waits.add("wait", "ms", wait)
	}
	report.addFigures("live", waits)
	var table bytes.Buffer
	must.Do(t, report.WriteTable(&table))
	for _, line := range []string{
		"PostgreSQL 18.1 (fsync on, jit on)",
		"1 write 123,456 events/s 45,000 rows 2.78 [2.47 … 3.09] at least 2.00 ok",
		"2 keep 50 bytes 100 rows 0.50 at most 1/6 missed",
		"wait 3 ms [1.5 … 12]",
	} {
		if !strings.Contains(strings.Join(strings.Fields(table.String()), " "), line) {
			t.Errorf("no %q in\n%s", line, &table)
		}
	}
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	values := make([]float64, 200)
	for i := range values {
		values[len(values)-1-i] = float64(i + 1)
	}
	for share, want := range map[float64]float64{0: 1, 0.5: 100, 0.99: 198, 1: 200} {
		if got := percentile(values, share); got != want {
			t.Errorf("a share of %v of 1 to 200 is up to %v, want %v", share, got, want)
		}
	}
}
