// Package daemon runs a server program privately: with an unprivileged account, a folder and a port of its own, and a
// watchdog, so that the server does not survive the process that started it.
package daemon

import (
	"fmt"
	"net"
)

// Host is the only address that private servers listen on.
const Host = "127.0.0.1"

// FreePort returns a port that was free a moment ago. Another process may take it before the server does.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(Host, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
