// Package agui is the face for AG-UI clients: they run and connect with a RunAgentInput, receive the
// stream of a thread as server-sent events, and stop runs. The id of a frame is the place that a
// client resumes at.
package agui
