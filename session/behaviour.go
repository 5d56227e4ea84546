package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Behaviour returns the behaviour of type T of a session; T is usually an interface. The first use
// makes it from a state of the session, and all later uses return the same one. If no state has
// such a behaviour, a new state is added under the name of its type in the registry of the context.
//
// The errors are ErrNoRegistry, ErrNoBehaviour, ErrAmbiguous (use [BehaviourAt]), ErrInvalidState,
// ErrCycle, and the errors of the context and of the factory. After an error, the next use tries to
// make the behaviour. ErrCycle is found within one session and within one goroutine. If factories
// of two sessions wait for each other in two goroutines, they wait until a context ends.
func Behaviour[T any](ctx context.Context, s *Session) (T, error) {
	return find[T](ctx, s, (*contents).choose)
}

// BehaviourAt returns the behaviour of the state with the key, as [Behaviour] does. If the state
// does not name its type, and its key is not the name of a type, it has the only behaviour in the
// registry of type T. The same holds for a key without a state.
func BehaviourAt[T any](ctx context.Context, s *Session, key string) (T, error) {
	return find[T](ctx, s, func(c *contents, registry *Registry, wanted reflect.Type) (string, *registration, error) {
		return c.chooseAt(key, registry, wanted)
	})
}

// StateOf returns the state with the key, for callers that need only the data. Its behaviour, if
// there is one or will be one, uses the same state. If there is no state, a new one is added.
func StateOf[State any](s *Session, key string) (*State, error) {
	c := s.use()
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.parts[key]; p != nil {
		state, ok := p.state.(*State)
		if !ok {
			return nil, fmt.Errorf("session: state %q: %w: it is in use as a %T: use that type", key, ErrInvalidState, cmp.Or(p.state, p.behaviour))
		}
		return state, nil
	}
	var p *part
	var err error
	if document := c.states.Get(key); document != nil {
		p, err = readState[State](document)
	} else if p, err = newState[State]("", ""); err == nil {
		c.states.Set(key, p.document)
	}
	if err != nil {
		return nil, fmt.Errorf("session: state %q: %w", key, err)
	}
	c.parts[key] = p
	delete(c.making, key) // what is being made has another state
	return p.state.(*State), nil
}

// A part is what a state is in use as.
type part struct {
	registration *registration // nil until there is a behaviour
	behaviour    any
	state        any             // a pointer; nil for a Serializer
	document     json.RawMessage // how a new state is written at first
	base         json.RawMessage // how it was encoded at first
	encode       func() (json.RawMessage, error)
	isWhole      bool // encode may have another format than the document
}

// readState reads a state.
func readState[State any](document json.RawMessage) (*part, error) {
	state := new(State)
	if err := json.Unmarshal(document, state); err != nil {
		return nil, fmt.Errorf("%w: read as a %T: %w", ErrInvalidState, state, err)
	}
	p := &part{state: state, encode: func() (json.RawMessage, error) { return encode(state) }}
	var err error
	if p.base, err = p.encode(); err != nil {
		return nil, fmt.Errorf("%w: a %T cannot be written: %w", ErrInvalidState, state, err)
	}
	return p, nil
}

// newState returns a zero state, which names its type if the type has a name and the state has a place for it.
func newState[State any](discriminator, name string) (*part, error) {
	document, err := encode(new(State))
	if err != nil {
		return nil, fmt.Errorf("%w: a %T cannot be written: %w", ErrInvalidState, new(State), err)
	}
	if named := typed(document, discriminator, name); name != "" && json.Unmarshal(named, new(State)) == nil {
		document = named
	}
	p, err := readState[State](document)
	if err != nil {
		return nil, err
	}
	p.document = document
	return p, nil
}

// typed puts the name of the type before the members of a new state. A state that is not an object, or has
// that member, has no place for it.
func typed(state json.RawMessage, discriminator, name string) json.RawMessage {
	o, ok := rawjson.ParseObject(state)
	if !ok || o.Get(discriminator) != nil {
		return state
	}
	named := rawjson.NewObject()
	named.Add(discriminator, rawjson.Quote(nil, name))
	for _, m := range o.Members {
		named.Add(m.Key, m.Value)
	}
	return named.Text()
}

// written returns the text of a state to write, given the text that was read.
func (p *part) written(key string, document json.RawMessage) (json.RawMessage, error) {
	now, err := p.encode()
	if err != nil {
		return nil, fmt.Errorf("session: state %q: %w: it cannot be written: %w", key, ErrInvalidState, err)
	}
	if p.isWhole && !bytes.Equal(p.base, now) && !says(document, p.base) {
		return retyped(document, now), nil
	}
	return merge(document, p.base, now), nil
}

// says reports whether a document holds what its behaviour wrote at first, perhaps among other members. If not,
// it has another format.
func says(document, first json.RawMessage) bool {
	d, isObject := rawjson.ParseObject(document)
	f, wasObject := rawjson.ParseObject(first)
	if !isObject || !wasObject {
		return isObject == wasObject && jsontree.Equal(document, first)
	}
	for _, m := range f.Members {
		if value := d.Get(m.Key); value == nil || !jsontree.Equal(value, m.Value) {
			return false
		}
	}
	return true
}

// retyped returns a state that replaces a document, and names its type where the document did.
func retyped(document, state json.RawMessage) json.RawMessage {
	switch declared := declarationOf(document); {
	case declared.typed:
		return typed(state, "$type", declared.name)
	case declared.name != "":
		return typed(state, "type", declared.name)
	}
	return state
}

// find returns the behaviour that was chosen, and makes it first if necessary. Callers that need the same one wait.
func find[T any](ctx context.Context, s *Session, choose func(*contents, *Registry, reflect.Type) (string, *registration, error)) (T, error) {
	var none T
	registry, _ := ctx.Value(registryKey{}).(*Registry)
	if registry == nil {
		return none, fmt.Errorf("session: %w in the context of %s: use session.WithRegistry", ErrNoRegistry, reflect.TypeFor[T]())
	}
	c := s.use()
	for {
		c.mu.Lock()
		key, registration, err := choose(c, registry, reflect.TypeFor[T]())
		if err != nil {
			c.mu.Unlock()
			return none, fmt.Errorf("session: %w", err)
		}
		if p := c.parts[key]; p != nil && p.behaviour != nil {
			c.mu.Unlock()
			return p.behaviour.(T), nil
		}
		if others := c.making[key]; others != nil {
			if err := c.waitFor(ctx, key, others); err != nil { // unlocks
				return none, err
			}
			continue
		}
		if err := c.make(ctx, key, registration); err != nil { // unlocks
			return none, fmt.Errorf("session: state %q of type %q: %w", key, registration.name, err)
		}
	}
}

// make makes the behaviour of a state. It is called with the lock held, and releases it.
func (c *contents) make(ctx context.Context, key string, registration *registration) error {
	begun := &making{of: c, outer: makingOf(ctx), over: make(chan struct{})}
	c.making[key] = begun
	known, document := c.parts[key], c.states.Get(key)
	c.mu.Unlock()

	var made *part
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		defer close(begun.over)
		if c.making[key] != begun {
			return // the state was set or removed in the meantime
		}
		delete(c.making, key)
		if made != nil {
			if document == nil {
				c.states.Set(key, made.document)
			}
			c.parts[key] = made
		}
	}()
	p, err := registration.attach(context.WithValue(ctx, makingKey{}, begun), known, document, c.shape.discriminator)
	if err != nil {
		return err
	}
	if p.behaviour == nil {
		return fmt.Errorf("%w: its factory returned nil", ErrNoBehaviour)
	}
	p.registration = registration
	made = p
	return nil
}

// making is a behaviour in the making. The context of its factory has it.
type making struct {
	of       *contents
	outer    *making       // whose factory needs it, perhaps in another session
	over     chan struct{} // closed when that is over
	waitsFor []*making     // of the same session: what its factory, or a factory that it called, waits for; guarded by of.mu
}

type makingKey struct{}

func makingOf(ctx context.Context) *making {
	m, _ := ctx.Value(makingKey{}).(*making)
	return m
}

// waitFor waits until another goroutine has made a behaviour, unless that waits for the caller. It is called
// with the lock held, and releases it.
func (c *contents) waitFor(ctx context.Context, key string, others *making) error {
	caller := makingOf(ctx)
	if others.needs(caller) {
		c.mu.Unlock()
		return fmt.Errorf("session: state %q: %w: its factory needs, through others, its own behaviour", key, ErrCycle)
	}
	var waiting []*making
	for m := caller; m != nil; m = m.outer {
		if m.of == c {
			m.waitsFor = append(m.waitsFor, others)
			waiting = append(waiting, m)
		}
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, m := range waiting {
			at := slices.Index(m.waitsFor, others)
			m.waitsFor = slices.Delete(m.waitsFor, at, at+1)
		}
	}()

	select {
	case <-others.over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("session: state %q: its behaviour is still being made: %w", key, context.Cause(ctx))
	}
}

// needs reports whether this cannot be made before the caller, or before one whose factory needs the caller.
func (m *making) needs(caller *making) bool {
	select {
	case <-m.over:
		return false
	default:
	}
	for a := caller; a != nil; a = a.outer {
		if a == m {
			return true
		}
	}
	return slices.ContainsFunc(m.waitsFor, func(other *making) bool { return other.needs(caller) })
}

// registrationOf returns the registration of a state, or nil: the one that made its behaviour, else the one in
// the registry.
func (c *contents) registrationOf(key string, registry *Registry) *registration {
	if p := c.parts[key]; p != nil && p.registration != nil {
		return p.registration
	}
	return registry.of(key, c.declarationOf(key))
}

func (c *contents) declarationOf(key string) declaration {
	state := c.states.Get(key)
	declared, ok := c.declared[key]
	if !ok && state != nil {
		declared = declarationOf(state)
		c.declared[key] = declared
	}
	return declared
}

// choose finds the state that has the behaviour, or the key for a new state.
func (c *contents) choose(registry *Registry, wanted reflect.Type) (string, *registration, error) {
	var keys []string
	var found *registration
	for _, key := range c.states.Keys() {
		if r := c.registrationOf(key, registry); r != nil && r.makes(wanted) {
			keys, found = append(keys, key), r
		}
	}
	switch len(keys) {
	case 0:
		return c.chooseNew(registry, wanted)
	case 1:
		return keys[0], found, nil
	default:
		return "", nil, fmt.Errorf("%w: the states %s all have a behaviour that is a %s: say which with BehaviourAt", ErrAmbiguous, quoted(keys), wanted)
	}
}

func (c *contents) chooseNew(registry *Registry, wanted reflect.Type) (string, *registration, error) {
	only, err := registry.only(wanted)
	if err != nil {
		return "", nil, err
	}
	if c.states.Place(only.name) >= 0 {
		return "", nil, fmt.Errorf("%w: %s would get a state under %q, but there is one of type %q, which is not registered: register it, or use BehaviourAt",
			ErrNoBehaviour, wanted, only.name, c.declarationOf(only.name).name)
	}
	return only.name, only, nil
}

func (c *contents) chooseAt(key string, registry *Registry, wanted reflect.Type) (string, *registration, error) {
	r := c.registrationOf(key, registry)
	if r == nil && !c.declarationOf(key).typed {
		var err error
		if r, err = registry.only(wanted); err != nil {
			return "", nil, fmt.Errorf("state %q: %w", key, err)
		}
	}
	switch {
	case r == nil:
		return "", nil, fmt.Errorf("%w: state %q has type %q, which is not registered: register it", ErrNoBehaviour, key, c.declarationOf(key).name)
	case !r.makes(wanted):
		return "", nil, fmt.Errorf("%w: state %q of type %q has a %s, which is not a %s: use another type or key", ErrNoBehaviour, key, r.name, r.behaviour, wanted)
	}
	return key, r, nil
}

// only returns the only registration whose behaviours are of a type.
func (r *Registry) only(wanted reflect.Type) (*registration, error) {
	fit := r.implementing(wanted)
	switch len(fit) {
	case 0:
		return nil, fmt.Errorf("%w is a %s: register one", ErrNoBehaviour, wanted)
	case 1:
		return fit[0], nil
	default:
		var names []string
		for _, registered := range fit {
			names = append(names, registered.name)
		}
		return nil, fmt.Errorf("%w: the registered types %s all are a %s: say which with BehaviourAt, whose key may be the type's name",
			ErrAmbiguous, quoted(names), wanted)
	}
}

func quoted(names []string) string {
	list := slices.Clone(names)
	for i, name := range list {
		list[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(list, ", ")
}
