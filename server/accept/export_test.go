package accept

import "github.com/pgagui/pgagui/internal/rawjson"

// HasCycle reports whether an event has a patch that moves a value into itself.
func HasCycle(event []byte) bool {
	for _, name := range []string{"delta", "patch"} {
		if patch := rawjson.MemberOf(event, name); patch != nil && patch[0] == '[' && cycles(patch) != 0 {
			return true
		}
	}
	return false
}

// Size returns about what a filter takes, in bytes.
func Size(f *Filter) int { return f.state.size }
