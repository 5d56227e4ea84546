package events

import (
	"math"
	"time"
)

// EarliestTime is the earliest time at which an event is recorded: before it there were no agents, so an
// earlier time comes from a clock that was not set. agui_internal.earliest_time() is the same.
var EarliestTime = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)

// TimeOf returns the point in time that a timestamp states. The protocol has milliseconds since 1970.
// Some frameworks write seconds: numbers from 1e9 to 1e11. A smaller number is the clock of a
// process, which is no point in time. agui_internal.json_timestamp does the same in SQL.
func TimeOf(timestamp float64) (at time.Time, inSeconds, ok bool) {
	switch {
	case timestamp >= 1e9 && timestamp < 1e11:
		seconds, rest := math.Modf(timestamp)
		return time.Unix(int64(seconds), int64(math.Round(rest*1e6))*1000), true, true
	case timestamp >= 1e11 && timestamp < 253402300800000: // the year 10000
		milliseconds, rest := math.Modf(timestamp)
		return time.UnixMilli(int64(milliseconds)).Add(time.Duration(math.Round(rest*1000)) * time.Microsecond), false, true
	}
	return time.Time{}, false, false
}
