package vmhost

// What the host must do. The policy itself never writes: it returns effects.

import "fmt"

// Effect is one of [Apply], [MergePatch], [JSONPatch], [Create], [Delete], [InCluster], [Event],
// [Other].
type Effect interface {
	isEffect()
}

// Apply is a server-side apply: these fields shall have these values, and the plugin owns them. It
// takes over fields of other managers, and creates the object if it is absent. Needs [VerbPatch],
// and [VerbCreate] if it may create.
type Apply struct {
	// Object holds the fields to own, with apiVersion, kind, metadata.name and, for a namespaced
	// kind, metadata.namespace: any value that encoding/json writes in this form.
	Object any
	// Subresource such as status; if empty, the object itself.
	Subresource string
	// Polite does not take over fields that another manager owns with another value. The turn then
	// ends with a terminal failure that names manager and field.
	Polite bool
	// Existing does not create the object.
	Existing bool
	// IfVersion requires that the object still has this resourceVersion; if empty, any.
	IfVersion string
}

// MergePatch is a JSON merge patch (RFC 7386): nil removes a field, and a list is replaced as a
// whole. Needs [VerbPatch].
type MergePatch struct {
	Key ObjectKey
	// Subresource such as status; if empty, the object itself.
	Subresource string
	// Body is any value that encoding/json writes as an object: map[string]any, a struct,
	// [json.RawMessage].
	Body any
	// IfVersion requires that the object still has this resourceVersion; if empty, any.
	IfVersion string
}

// JSONPatch is a JSON patch (RFC 6902). If a [Test] fails, nothing changes, and the host retries
// the key with a fresh snapshot. Needs [VerbPatch].
type JSONPatch struct {
	Key ObjectKey
	// Subresource such as status; if empty, the object itself.
	Subresource string
	Operations  []Operation
	// IfVersion requires that the object still has this resourceVersion; if empty, any.
	IfVersion string
}

// Operation is one step of a [JSONPatch]. Path is a JSON pointer: /metadata/labels/a~1b.
type Operation struct {
	Op, Path string
	Value    any
}

// Test requires that path has this value.
func Test(path string, value any) Operation { return Operation{"test", path, value} }

// Add sets path, whether or not it exists.
func Add(path string, value any) Operation { return Operation{"add", path, value} }

// Replace sets path, which must exist.
func Replace(path string, value any) Operation { return Operation{"replace", path, value} }

// Remove removes path, which must exist.
func Remove(path string) Operation { return Operation{"remove", path, nil} }

// Create creates an object. If one of that name exists, it is refused with AlreadyExists. Needs
// [VerbCreate].
type Create struct {
	// Object is the whole object, with apiVersion, kind and metadata.name: any value that
	// encoding/json writes in this form.
	Object any
}

// Delete deletes an object; it succeeds if the object is already gone. Needs [VerbDelete].
type Delete struct {
	Key ObjectKey
	// UID requires the object with this uid, not another one of the same name; if empty, any.
	UID string
	// IfVersion requires that the object still has this resourceVersion; if empty, any.
	IfVersion string
	// Propagation is what happens to the objects that it owns.
	Propagation Propagation
}

// Propagation is what happens to the objects that a deleted object owns.
type Propagation uint8

const (
	// DefaultPropagation leaves the choice to the API server's default for the kind.
	DefaultPropagation Propagation = iota
	// Background deletes them after their owner.
	Background
	// Foreground deletes them before their owner.
	Foreground
	// Orphan leaves them in place.
	Orphan
)

// InCluster is an effect in another cluster than the turn's. It needs the same permission as in the
// turn's own, and a controller of the plugin in that cluster.
type InCluster struct {
	// Cluster is the name of a member; if empty, the host's own cluster.
	Cluster string
	// Effect is an [Apply], [MergePatch], [JSONPatch], [Create] or [Delete].
	Effect Effect
}

// Event is a Kubernetes Event about the request's object. It never fails or delays a turn, and
// needs no permission.
type Event struct {
	Type EventType
	// Reason is the machine-readable reason, in CamelCase: Completed.
	Reason string
	// Action is what was done or tried, in CamelCase. If empty, the reason.
	Action string
	// Note is the human-readable text.
	Note string
	// Related is another object that is involved.
	Related *ObjectKey
}

// EventType is the severity of an [Event].
type EventType uint8

const (
	// Normal is for an expected event.
	Normal EventType = iota
	// Warning is for a problem that a person should look at.
	Warning
)

// NormalEvent returns an [Event] of type [Normal], with a note in the form of [fmt.Sprintf].
func NormalEvent(reason, format string, values ...any) Event {
	return Event{Type: Normal, Reason: reason, Note: fmt.Sprintf(format, values...)}
}

// WarningEvent returns an [Event] of type [Warning], with a note in the form of [fmt.Sprintf].
func WarningEvent(reason, format string, values ...any) Event {
	return Event{Type: Warning, Reason: reason, Note: fmt.Sprintf(format, values...)}
}

// Other is an effect that this version of the contract has no case for. A host that does not know
// the name refuses the turn and names it.
type Other struct {
	Name string
	Body any
}

func (Apply) isEffect()      {}
func (MergePatch) isEffect() {}
func (JSONPatch) isEffect()  {}
func (Create) isEffect()     {}
func (Delete) isEffect()     {}
func (InCluster) isEffect()  {}
func (Event) isEffect()      {}
func (Other) isEffect()      {}
