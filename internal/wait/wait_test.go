package wait

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if !Until(func() bool { return time.Since(begin) > Patience/2 }) || time.Since(begin) > Patience/2+2*mostPause {
			t.Errorf("it took %s", time.Since(begin))
		}
		begin = time.Now()
		if Until(func() bool { return false }) || time.Since(begin) < Patience {
			t.Errorf("gave up after %s", time.Since(begin))
		}
	})
}
