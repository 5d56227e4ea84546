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
// # Packages
//
// Package core starts, records, follows and stops runs, and knows no protocol of clients. Each package
// of folder face translates between the core and one protocol: AG-UI (agui), the CopilotKit runtime
// (copilotkit), the Events API of the Ambient Platform (ambient), and the resources of pgagui itself
// (rest). A face is one value in a list, and has no logic of its own. This package puts both together.
//
// Package access says who may do what, package accept keeps live streams valid for the official
// client, and package problem says what an error tells a client. Each package uses only those before
// it: access, accept and problem, then core, face, the faces, and this package.
package server
