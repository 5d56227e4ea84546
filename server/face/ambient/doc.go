// Package ambient is the face of the Ambient Platform: its Events API over HTTP (events.go) and its
// service over gRPC (grpc.go). A session is a thread, and the ids of frames are seqs, which serve
// after_seq.
//
// Runners of the platform push events and messages one by one. shapes.go says what these are in
// AG-UI, and what the events and messages of a thread are for clients of the platform.
package ambient
