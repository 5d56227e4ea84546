package cli

import (
	"testing"
)

func TestNumbersForPeople(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.00 kB", 25_440: "25.4 kB", 999_400: "999 kB", 1_000_000: "1.00 MB", 3_200_000_000_000: "3.20 TB",
	} {
		if got := BytesText(bytes); got != want {
			t.Errorf("bytesText(%d) = %q, want %q", bytes, got, want)
		}
	}
}
