// Package rest is pgagui's own face: what the Go package has, as resources of a thread.
//
// There is one endpoint for each method of pgagui.Store, with its names and its errors. Stored JSON
// goes out byte for byte, so lists are written member by member. Unknown parameters and members are
// errors: a misspelled afterSeq must not be ignored. server/openapi.yaml describes the endpoints.
//
// rest.go has threads and runs, conversation.go what a thread contains, append.go the writes, and
// sessions.go session state and checkpoints.
package rest
