// Package must ends tests in which something fails that is not their question.
package must

import "testing"

// Do ends the test with an error that is not nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Report lets the test fail with an error that is not nil, and continue.
func Report(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Have returns the value of a call, or ends the test with its error: must.Have(os.ReadFile(name))(t).
func Have[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return value
	}
}

// OrPanic returns the value of a call, for what belongs to no test.
func OrPanic[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
