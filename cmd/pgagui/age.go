package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// age is a flag that takes a duration, in days too: 90d.
type age time.Duration

func (a *age) Set(text string) error {
	if number, inDays := strings.CutSuffix(text, "d"); inDays {
		days, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return fmt.Errorf("%q is no number of days", text)
		}
		*a = age(time.Duration(days) * 24 * time.Hour)
		return nil
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
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

// pointInTime reads the text of a flag that takes how long ago, or a time. Zero when it is empty.
func pointInTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var ago age
	if ago.Set(text) == nil {
		return now.Add(-time.Duration(ago)), nil
	}
	point, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return point, fmt.Errorf("%s %s: give how long ago, as in 24h or 7d, or a time, as in %s", flag, text, now.UTC().Format(time.RFC3339))
	}
	return point, nil
}
