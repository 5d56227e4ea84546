// Package face is the seam between the core and the protocols of clients.
//
// A protocol is a package of this folder with one value, a [Face]. Package server has the list of
// them, and nothing else knows which protocols there are. To add one, write a package that registers
// its endpoints with an [HTTP], and add its value to the list. It translates paths, bodies and events,
// and has no logic; what two faces need is here, or in package core.
//
// [HTTP] lets requests in, within their rights and limits (http.go, route.go). Endpoints read
// parameters and bodies with [Query], [ReadObject] and [ReadBody] (query.go), answer with JSON and
// problem documents (answer.go), and stream server-sent events (sse.go).
package face
