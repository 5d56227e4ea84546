// Package live is the part of package pgagui that keeps working between calls: the [Hub] polls for
// new events and passes them to followers, the [Sender] stores what agents send while they run.
// Package pgagui is their face: it has the public types, the errors and the calls to begin and end.
package live
