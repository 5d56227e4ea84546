package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/xhit/go-str2duration/v2"
)

// age is a flag that takes a duration, in days and weeks too: 90d.
type age time.Duration

func (a *age) Set(text string) error {
	duration, err := str2duration.ParseDuration(text)
	if err != nil || duration < 0 {
		return fmt.Errorf("%q is no time such as 30m, 12h or 7d", text)
	}
	*a = age(duration)
	return nil
}

func (a *age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

func (a *age) Type() string { return "time" }

// pointsInTime are the ways in which a flag takes a point in time, and what is read where nothing says the zone: local time.
var pointsInTime = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}

// pointInTime reads the text of a flag that takes how long ago, or a time. Zero when it is empty.
func pointInTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var ago age
	if ago.Set(text) == nil {
		return now.Add(-time.Duration(ago)), nil
	}
	for _, layout := range pointsInTime {
		if point, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return point, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %s: give how long ago, as in 24h or 7d, or a time, as in %s or %s",
		flag, text, now.Format("2006-01-02T15:04"), now.UTC().Format(time.RFC3339))
}

// seqOrTime reads the text of a flag that takes a seq, or what pointInTime takes.
func seqOrTime(flag, text string, now time.Time) (seq int64, point time.Time, err error) {
	if seq, err := strconv.ParseInt(text, 10, 64); err == nil {
		if seq < 1 {
			return 0, point, fmt.Errorf("%s %s: the first event of a thread has seq 1", flag, text)
		}
		return seq, point, nil
	}
	point, err = pointInTime(flag, text, now)
	if err != nil || text == "" {
		return 0, point, fmt.Errorf("%s %s: give the seq of an event, as in 17, how long ago, as in 2h, or a time, as in %s",
			flag, text, now.Format("2006-01-02T15:04"))
	}
	return 0, point, nil
}
