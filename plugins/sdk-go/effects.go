package vmhost

// What the host is to do. The policy itself never writes: it returns these.

import "fmt"

// Effect is one of [Apply], [MergePatch], [JSONPatch], [Create], [Delete], [Event], [Other].
type Effect interface {
	isEffect()
}

// Apply is server-side apply: these fields shall have these values, and they are mine. It takes over fields that others own, and creates the object if it is
// absent. Needs [VerbPatch], and [VerbCreate] if it may create.
type Apply struct {
	// Object holds the fields to own, with apiVersion, kind, metadata.name and, for a namespaced kind, metadata.namespace: anything that encoding/json writes so.
	Object any
	// Subresource such as status; empty: the object itself.
	Subresource string
	// Polite does not take over fields that another manager owns with another value; such a turn ends with a terminal failure that names manager and field.
	Polite bool
	// Existing does not create the object.
	Existing bool
	// IfVersion asks that the object still has this resourceVersion; empty: any.
	IfVersion string
}

// MergePatch is a JSON merge patch (RFC 7386): nil removes a field, a list is replaced whole. Needs [VerbPatch].
type MergePatch struct {
	Key ObjectKey
	// Subresource such as status; empty: the object itself.
	Subresource string
	// Body is anything that encoding/json writes as an object: map[string]any, a struct, [json.RawMessage].
	Body any
	// IfVersion asks that the object still has this resourceVersion; empty: any.
	IfVersion string
}

// JSONPatch is a JSON patch (RFC 6902). A [Test] that fails changes nothing, and the key is tried again with a fresh snapshot. Needs [VerbPatch].
type JSONPatch struct {
	Key ObjectKey
	// Subresource such as status; empty: the object itself.
	Subresource string
	Operations  []Operation
	// IfVersion asks that the object still has this resourceVersion; empty: any.
	IfVersion string
}

// Operation is one step of a [JSONPatch]. Path is a JSON pointer: /metadata/labels/a~1b.
type Operation struct {
	Op, Path string
	Value    any
}

// Test goes on only if path has this value.
func Test(path string, value any) Operation { return Operation{"test", path, value} }

// Add sets path, whether it is there or not.
func Add(path string, value any) Operation { return Operation{"add", path, value} }

// Replace sets path, which must be there.
func Replace(path string, value any) Operation { return Operation{"replace", path, value} }

// Remove removes path, which must be there.
func Remove(path string) Operation { return Operation{"remove", path, nil} }

// Create creates an object; one of that name that exists already is a refusal with AlreadyExists. Needs [VerbCreate].
type Create struct {
	// Object is the whole object, with apiVersion, kind and metadata.name: anything that encoding/json writes so.
	Object any
}

// Delete deletes an object; one that is gone already is done. Needs [VerbDelete].
type Delete struct {
	Key ObjectKey
	// UID asks for the object with this uid, not another of the same name; empty: whichever has the name.
	UID string
	// IfVersion asks that the object still has this resourceVersion; empty: any.
	IfVersion string
	// Propagation is what happens to the objects that it owns.
	Propagation Propagation
}

// Propagation is what happens to the objects that a deleted object owns.
type Propagation uint8

const (
	// DefaultPropagation is what the API server does for the kind.
	DefaultPropagation Propagation = iota
	// Background deletes them after it.
	Background
	// Foreground deletes them before it.
	Foreground
	// Orphan leaves them.
	Orphan
)

// Event is a Kubernetes Event about the request's object. It never fails or delays a turn, and needs no permission.
type Event struct {
	Type EventType
	// Reason is why, in CamelCase, for machines: Completed.
	Reason string
	// Action is what was done or tried, in CamelCase. Empty: the reason is taken.
	Action string
	// Note is for people.
	Note string
	// Related is another object that has to do with it.
	Related *ObjectKey
}

// EventType is the severity of an [Event].
type EventType uint8

const (
	// Normal is for something that should happen happened.
	Normal EventType = iota
	// Warning is for something that a person should look at.
	Warning
)

// NormalEvent is an [Event] of type [Normal], with a note in the form of [fmt.Sprintf].
func NormalEvent(reason, format string, values ...any) Event {
	return Event{Type: Normal, Reason: reason, Note: fmt.Sprintf(format, values...)}
}

// WarningEvent is an [Event] of type [Warning], with a note in the form of [fmt.Sprintf].
func WarningEvent(reason, format string, values ...any) Event {
	return Event{Type: Warning, Reason: reason, Note: fmt.Sprintf(format, values...)}
}

// Other is an effect that this version of the contract has no case for. A host that does not know the name refuses the turn by that name.
type Other struct {
	Name string
	Body any
}

func (Apply) isEffect()      {}
func (MergePatch) isEffect() {}
func (JSONPatch) isEffect()  {}
func (Create) isEffect()     {}
func (Delete) isEffect()     {}
func (Event) isEffect()      {}
func (Other) isEffect()      {}
