package session

import "errors"

// The errors of this package, for errors.Is. The errors that functions return also name the key and the type.
var (
	ErrInvalidDocument = errors.New("not a session document")
	ErrUnknownShape    = errors.New("unknown shape of a session document")
	ErrNoField         = errors.New("the shape of the session has no such field")
	ErrInvalidState    = errors.New("invalid state")
	ErrNoRegistry      = errors.New("no registry of behaviours")
	ErrNoBehaviour     = errors.New("no behaviour")
	ErrAmbiguous       = errors.New("several behaviours fit")
	ErrCycle           = errors.New("behaviours need each other")
	ErrNotCBOR         = errors.New("not a JSON document in CBOR")

	ErrInvalidSnapshot   = errors.New("not a thread snapshot")
	ErrInvalidCheckpoint = errors.New("not a checkpoint")
)
