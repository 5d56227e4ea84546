package server

// UsesReplica reports whether reads go to the replica now.
func (s *Server) UsesReplica() bool { return s.replica.usable.Load() != nil }
