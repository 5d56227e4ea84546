// Package core starts, records, streams and stops the runs of agents. It knows no protocol of clients:
// the packages of folder face translate between it and one protocol each.
//
// A [Server] takes the place of a run in its thread, decides where the run continues from, calls the
// agent, and stores what the agent sends ([Server.Start], run.go). A [Stream] gives a client the
// history of a thread, and then the events as they are stored (stream.go). A [Tenant] is the store
// for one request, on the primary or on a standby (route.go, replica.go). Agents that another process
// runs push their events one by one (push.go), and a [MessageFeed] reads whole messages as they become
// complete (messages.go).
//
// The core stands on the public Go API of package pgagui. Its errors for clients are those of package
// problem. Programs use package server; the names here may change with any version.
package core
