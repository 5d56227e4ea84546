// Package copilotkit is the face of the CopilotKit runtime. Paths, names and shapes are those of
// @copilotkit/core 1.75. A client uses a path for each request, or one path for all of them with the
// request in an envelope.
package copilotkit
