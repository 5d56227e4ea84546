// Package server gives every language and every browser what package pgagui gives Go: it records
// agents, and lets clients attach, resume, branch, stop and read over HTTP.
//
//	store := pgagui.New(pool, nil)
//	handler, err := server.New(store, server.Options{
//		Agents: []server.Agent{{Name: "assistant", URL: "http://localhost:9000/"}},
//		Access: authenticator,
//	})
//	http.ListenAndServe(address, handler)
//
// # Runs belong to the server
//
// A client posts an input (RunAgentInput) to /agent/{name}/run. The server takes the place of the
// run in its thread, calls the agent, and stores the agent's events. The client receives each event
// after it is stored, with its position as the id of the frame. If the client goes away, the run
// continues to its end, and any server of the same database can serve the client when it comes
// back.
//
// # Layers
//
// The core starts, records, follows and stops runs. Each face translates between the core and one
// protocol of clients: AG-UI, the CopilotKit runtime, the Events API of the Ambient Platform, and
// the resources of pgagui itself. A face has no logic of its own.
package server
