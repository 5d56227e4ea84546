package cli

import (
	"testing"
	"time"
)

// A point in time without a zone is in the zone of the caller. A number is a seq.
func TestSeqOrTime(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 2*60*60)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, zone)
	for text, want := range map[string]time.Time{
		"2h":                        now.Add(-2 * time.Hour),
		"7d":                        now.Add(-7 * 24 * time.Hour),
		"1d12h":                     now.Add(-36 * time.Hour),
		"0s":                        now,
		"2026-11-20T10:00":          time.Date(2026, 11, 20, 10, 0, 0, 0, zone),
		"2026-11-20 10:00":          time.Date(2026, 11, 20, 10, 0, 0, 0, zone),
		"2026-11-20T10:00:05":       time.Date(2026, 11, 20, 10, 0, 5, 0, zone),
		"2026-11-20 10:00:05.5":     time.Date(2026, 11, 20, 10, 0, 5, 5e8, zone),
		"2026-11-20T10:00:00Z":      time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		"2026-11-20T10:00:00-05:00": time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC),
	} {
		seq, point, err := SeqOrTime("--at", text, now)
		if err != nil || seq != 0 || !point.Equal(want) {
			t.Errorf("%s: %d, %s, %v; want %s", text, seq, point, err, want)
		}
	}
	for text, want := range map[string]int64{"1": 1, "17": 17, "9223372036854775807": 9223372036854775807} {
		if seq, point, err := SeqOrTime("--at", text, now); err != nil || seq != want || !point.IsZero() {
			t.Errorf("%s: %d, %s, %v", text, seq, point, err)
		}
	}
	for _, text := range []string{"", "0", "-5", "-2h", "-5d", "5 d", "5days", "99999999d", "2026-11-20", "10:00", "yesterday", "9223372036854775808"} {
		if seq, point, err := SeqOrTime("--at", text, now); err == nil {
			t.Errorf("%q is read as %d, %s", text, seq, point)
		}
	}
}
