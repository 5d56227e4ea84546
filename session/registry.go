package session

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// A Registry is a list of types of behaviours: the name of each, the type of its state, and its
// factory. It holds no behaviours; those belong to their sessions. Any number of sessions may use
// it at the same time.
type Registry struct {
	mu            sync.RWMutex
	registrations []*registration
}

// A registration is a type of behaviour.
type registration struct {
	name      string
	behaviour reflect.Type
	// attach makes a behaviour. known is what was attached to the state before, by StateOf, or nil; document is nil where there is no
	// state yet, and then the part says how the state is written at first.
	attach func(ctx context.Context, known *part, document json.RawMessage, discriminator string) (*part, error)
}

// makes reports whether its behaviours are of a type, or implement it. Types that Go would convert, as it does a func() to a type with that
// underlying type, are others.
func (r *registration) makes(wanted reflect.Type) bool {
	return r.behaviour == wanted || wanted.Kind() == reflect.Interface && r.behaviour.Implements(wanted)
}

// NewRegistry returns a registry without behaviours.
func NewRegistry() *Registry { return &Registry{} }

type registryKey struct{}

// WithRegistry returns a context with a registry, which [Behaviour] uses to make behaviours.
func WithRegistry(ctx context.Context, registry *Registry) context.Context {
	return context.WithValue(ctx, registryKey{}, registry)
}

// Register adds behaviours that are made from a state: data that encoding/json reads and writes.
// The name is the name of the type in documents: the $type (or type) of a state, or its key.
//
// The factory is called at most once for each state. It gets the pointer that the session keeps, so
// the session writes what the behaviour changes in the state. A factory may get other behaviours of
// the session with the context that it receives.
//
// Register panics if the name is empty or in use, which is a mistake in the program.
func Register[State, B any](registry *Registry, name string, factory func(ctx context.Context, state *State) (B, error)) {
	attach := func(ctx context.Context, known *part, document json.RawMessage, discriminator string) (*part, error) {
		made, err := known, error(nil)
		switch {
		case known != nil:
		case document != nil:
			made, err = readState[State](document)
		default:
			made, err = newState[State](discriminator, name)
		}
		if err != nil {
			return nil, err
		}
		state, ok := made.state.(*State)
		if !ok {
			return nil, fmt.Errorf("%w: it is in use as a %T, but its behaviour takes a %T: use one type", ErrInvalidState, made.state, state)
		}
		behaviour, err := factory(ctx, state)
		if err != nil {
			return nil, err
		}
		attached := *made
		attached.behaviour = behaviour
		return &attached, nil
	}
	registry.add(&registration{name, reflect.TypeFor[B](), attach})
}

// A Serializer is a behaviour that writes its state itself.
type Serializer interface {
	// Serialize returns the state as JSON. It is called whenever the session is written.
	Serialize() (json.RawMessage, error)
}

// RegisterSerializer adds behaviours that write their own state. The factory gets the document that
// the behaviour wrote, nil for a new one. All else is as with [Register], with one exception: if
// the first result of Serialize differs from the document, the document has another format. When
// such a behaviour has changed, its text replaces all of the document but the type.
func RegisterSerializer[B Serializer](registry *Registry, name string, factory func(ctx context.Context, document json.RawMessage) (B, error)) {
	attach := func(ctx context.Context, known *part, document json.RawMessage, discriminator string) (*part, error) {
		if known != nil {
			return nil, fmt.Errorf("%w: it is in use as a %T, but its behaviour writes it itself", ErrInvalidState, known.state)
		}
		behaviour, err := factory(ctx, slices.Clone(document))
		if err != nil {
			return nil, err
		}
		made := &part{behaviour: behaviour, isWhole: true, encode: func() (json.RawMessage, error) {
			text, err := behaviour.Serialize()
			if err == nil && !json.Valid(text) {
				err = fmt.Errorf("its %T gives no JSON", behaviour)
			}
			return text, err
		}}
		if made.base, err = made.encode(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidState, err)
		}
		made.document = typed(made.base, discriminator, name)
		return made, nil
	}
	registry.add(&registration{name, reflect.TypeFor[B](), attach})
}

func (r *Registry) add(added *registration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if added.name == "" {
		panic(fmt.Sprintf("session: behaviour %s is registered without a name", added.behaviour))
	}
	for _, known := range r.registrations {
		if known.name == added.name {
			panic(fmt.Sprintf("session: behaviours %s and %s are both registered as %q", known.behaviour, added.behaviour, added.name))
		}
	}
	r.registrations = append(r.registrations, added)
}

// named returns the registration with a name, or nil.
func (r *Registry) named(name string) *registration {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, known := range r.registrations {
		if known.name == name {
			return known
		}
	}
	return nil
}

// implementing returns the registrations of behaviours that are of a type, or implement it, in the order in which they were made.
func (r *Registry) implementing(wanted reflect.Type) []*registration {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var fit []*registration
	for _, known := range r.registrations {
		if known.makes(wanted) {
			fit = append(fit, known)
		}
	}
	return fit
}

// A declaration is what a state says of its type.
type declaration struct {
	typed bool   // it has a $type that is a string
	name  string // that, or else its member type
}

func declarationOf(state json.RawMessage) declaration {
	o, _ := rawjson.ParseObject(state)
	if name, ok := stringOf(o.Get("$type")); ok {
		return declaration{typed: true, name: name}
	}
	name, _ := stringOf(o.Get("type"))
	return declaration{name: name}
}

// of returns the registration that a state belongs to, or nil. $type decides alone; type is a word of other uses as well, so it decides
// where it names a registration, and else the key does.
func (r *Registry) of(key string, d declaration) *registration {
	if known := r.named(d.name); known != nil || d.typed {
		return known
	}
	return r.named(key)
}
