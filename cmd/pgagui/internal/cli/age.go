package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/xhit/go-str2duration/v2"
)

// Age is a flag that takes a duration, also in days and weeks: 90d.
type Age time.Duration

// Set implements pflag.Value.
func (a *Age) Set(text string) error {
	duration, err := str2duration.ParseDuration(text)
	if err != nil || duration < 0 {
		return fmt.Errorf("%q is not a duration (expected for example 30m, 12h or 7d)", text)
	}
	*a = Age(duration)
	return nil
}

// String implements pflag.Value.
func (a *Age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

// Type implements pflag.Value.
func (a *Age) Type() string { return "duration" }

// timeLayouts are the formats of a flag that takes a point in time. Without a zone it is local
// time.
var timeLayouts = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}

// TimeFormats describes in help texts what pointInTime reads.
const TimeFormats = "an age such as 24h or 7d, or a date and time such as 2006-01-02T15:04 (local time unless it has a zone)"

// PointInTime parses a flag that takes an age or a point in time. It returns the zero time for "".
func PointInTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var ago Age
	if ago.Set(text) == nil {
		return now.Add(-time.Duration(ago)), nil
	}
	for _, layout := range timeLayouts {
		if point, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return point, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %s: not a point in time (expected an age such as 24h or 7d, or a date and time such as %s or %s)",
		flag, text, now.Format("2006-01-02T15:04"), now.UTC().Format(time.RFC3339))
}

// SeqOrTime parses a flag that takes a seq or a point in time.
func SeqOrTime(flag, text string, now time.Time) (seq int64, point time.Time, err error) {
	if seq, err := strconv.ParseInt(text, 10, 64); err == nil {
		if seq < 1 {
			return 0, point, fmt.Errorf("%s %s: not a seq (the first event of a thread has seq 1)", flag, text)
		}
		return seq, point, nil
	}
	point, err = PointInTime(flag, text, now)
	if err != nil || text == "" {
		return 0, point, fmt.Errorf("%s %s: not a point of a thread (expected the seq of an event such as 17, an age such as 2h, or a date and time such as %s)",
			flag, text, now.Format("2006-01-02T15:04"))
	}
	return 0, point, nil
}
