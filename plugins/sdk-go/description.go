package vmhost

// The description: the document of wit/v1/description.schema.json as plain data. The host checks it, and names what is wrong.

import (
	"encoding/json"
	"time"
)

// Description is what a plugin says about itself.
type Description struct {
	// Name is the plugin's name. It owns fields: do not change it.
	Name string `json:"name"`
	// Version is the plugin's own version, for people.
	Version     string       `json:"version,omitempty"`
	Controllers []Controller `json:"controllers"`
	// Permissions are what the effects may write: effects outside of them are refused before anything is written.
	Permissions []Permission `json:"permissions,omitempty"`
	Setup       Setup        `json:"setup,omitzero"`
}

// MarshalJSON adds the version of the format.
func (d Description) MarshalJSON() ([]byte, error) {
	type plain Description
	return json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		plain
	}{"vmhost/v1", plain(d)})
}

// Setup is what is there before the controllers start.
type Setup struct {
	// CustomResourceDefinitions are installed, if the operator allows it (--install-crds). Anything that encoding/json writes as a definition.
	CustomResourceDefinitions []any `json:"customResourceDefinitions,omitempty"`
}

// Controller says what its keys are, what wakes them, and how they are worked on.
type Controller struct {
	// Name is unique in the plugin; metrics and logs carry it.
	Name string `json:"name"`
	// Primary is the kind whose objects are the controller's keys (controller-runtime's For). A controller has this, or a Timer.
	Primary *Watch `json:"primary,omitempty"`
	// Timer is for a controller without a kind of its own: see [Every] and [Once].
	Timer *Timer `json:"timer,omitempty"`
	// Owns are kinds whose objects it makes, with a controller reference to the primary.
	Owns []Watch `json:"owns,omitempty"`
	// Watches are other kinds that wake keys, each with a Map.
	Watches []Watch `json:"watches,omitempty"`
	// Reads are other kinds that it reads. They wake nobody.
	Reads []Watch `json:"reads,omitempty"`
	// Finalizer (domain/name) is put on each object before the policy first sees it; the policy is called with Deleting, and it is taken off on [Finalized].
	Finalizer string `json:"finalizer,omitempty"`
	// Previous asks for Request.Previous: the object as of the last turn that succeeded.
	Previous bool `json:"previous,omitempty"`
	// EventSource is who the Events are from (reportingController). Empty: made of the names of plugin and controller.
	EventSource string `json:"eventSource,omitempty"`
	// Concurrency is how many keys are worked on at once. 0: the host's default.
	Concurrency uint32  `json:"concurrency,omitempty"`
	Retry       Backoff `json:"retry,omitzero"`
}

// Timer is when a controller without a kind gets its turns.
type Timer struct {
	EveryMs uint32 `json:"everyMs,omitempty"`
	Once    bool   `json:"once,omitempty"`
}

// Every is one turn at the start, and then one every so often.
func Every(period time.Duration) *Timer {
	return &Timer{EveryMs: max(milliseconds(period), 1)}
}

// Once is one turn at the start, and one after each swap.
func Once() *Timer {
	return &Timer{Once: true}
}

// Backoff is that of a failing key: BaseMs * 2^failures, at most CapMs. What is 0 is the host's default.
type Backoff struct {
	BaseMs uint32 `json:"baseMs,omitempty"`
	CapMs  uint32 `json:"capMs,omitempty"`
	// MaxRetries: after so many retries of a failure the key is dropped and reported, until the object or the plugin changes. Nil: never. See [Ptr].
	MaxRetries *uint32 `json:"maxRetries,omitempty"`
	// Bucket is a rate limit over the retries of all keys together.
	Bucket Bucket `json:"bucket,omitzero"`
}

// Bucket is a rate limit.
type Bucket struct {
	PerSecond uint32 `json:"perSecond"`
	Burst     uint32 `json:"burst"`
}

// Ptr is a pointer to a value, for fields that may be left out.
func Ptr[T any](value T) *T {
	return &value
}

// Permission is something that the plugin's effects may do.
type Permission struct {
	Kind
	Verbs []Verb `json:"verbs"`
	// Subresources: only these subresources. Left out: the object itself and no subresource.
	Subresources []string `json:"subresources,omitempty"`
	// Namespaces: only in these. Left out: all, and cluster-scoped objects.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Verb is what an effect does to an object.
type Verb string

// The verbs. VerbPatch covers [Apply], [MergePatch] and [JSONPatch].
const (
	VerbCreate Verb = "create"
	VerbPatch  Verb = "patch"
	VerbDelete Verb = "delete"
)
