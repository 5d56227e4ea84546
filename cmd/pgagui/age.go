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
