package vmhost

// The description: the document of wit/v1/description.schema.json as plain data. The host validates
// it, and its errors name the invalid field.

import (
	"encoding/json"
	"time"
)

// Description is what a plugin says about itself.
type Description struct {
	// Name is the plugin's name. It owns fields: do not change it.
	Name string `json:"name"`
	// Version is the plugin's own version, for display.
	Version     string       `json:"version,omitempty"`
	Controllers []Controller `json:"controllers,omitempty"`
	// Webhooks are answered by [Policy].Admit, and Conversions by [Policy].Convert.
	Webhooks    []Webhook    `json:"webhooks,omitempty"`
	Conversions []Conversion `json:"conversions,omitempty"`
	// Permissions are what the effects may write. The host refuses other effects before anything is
	// written.
	Permissions []Permission `json:"permissions,omitempty"`
	// HTTP are the requests that the plugin may send to services outside of the cluster.
	HTTP  []HTTPGrant `json:"http,omitempty"`
	Setup Setup       `json:"setup,omitzero"`
	// SettingsSchema is the structural schema (as openAPIV3Schema of a CustomResourceDefinition)
	// that the settings of a Plugin object have to fit: any value that encoding/json writes as one.
	// A setting that is not a string reaches the policy as JSON.
	SettingsSchema any `json:"settingsSchema,omitempty"`
}

// MarshalJSON adds the version of the format.
func (d Description) MarshalJSON() ([]byte, error) {
	type plain Description
	return json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		plain
	}{"vmhost/v1", plain(d)})
}

// Setup is what the host installs before the controllers start.
type Setup struct {
	// CustomResourceDefinitions are installed if the operator allows it (--install-crds). Each is
	// any value that encoding/json writes as a definition.
	CustomResourceDefinitions []any `json:"customResourceDefinitions,omitempty"`
}

// HTTPGrant are requests to a service outside of the cluster.
type HTTPGrant struct {
	// Host is a name, *.domain, or an address.
	Host string `json:"host"`
	// Port is 443 if it is 0, or 80 with the scheme http.
	Port uint16 `json:"port,omitempty"`
	// Scheme is https if it is empty.
	Scheme string `json:"scheme,omitempty"`
	// Methods are GET only if they are empty.
	Methods    []string     `json:"methods,omitempty"`
	PathPrefix string       `json:"pathPrefix,omitempty"`
	Headers    []HeaderFrom `json:"headers,omitempty"`
	// URLSetting is the operator's setting with the URL of the service, which replaces scheme, host
	// and port.
	URLSetting string `json:"urlSetting,omitempty"`
	// AllowPrivate: the host may have a private address; the operator has to name it, too.
	AllowPrivate bool `json:"allowPrivate,omitempty"`
}

// HeaderFrom is a header that the host adds, with the value of a Secret's key or of an operator's
// setting behind Prefix. The policy never sees it.
type HeaderFrom struct {
	Name    string     `json:"name"`
	Prefix  string     `json:"prefix,omitempty"`
	Secret  *SecretKey `json:"secret,omitempty"`
	Setting string     `json:"setting,omitempty"`
}

// SecretKey is one value of a Secret.
type SecretKey struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Key       string `json:"key"`
}

// Controller defines its keys, what wakes them, and how they are processed.
type Controller struct {
	// Name is unique in the plugin; metrics and logs carry it.
	Name string `json:"name"`
	// Primary is the kind whose objects are the controller's keys (controller-runtime's For). A
	// controller has either this or a Timer.
	Primary *Watch `json:"primary,omitempty"`
	// Timer is for a controller without a primary kind: see [Every] and [Once].
	Timer *Timer `json:"timer,omitempty"`
	// Owns are kinds of objects that it creates, with a controller reference to the primary.
	Owns []Watch `json:"owns,omitempty"`
	// Watches are other kinds that wake keys, each with a Map.
	Watches []Watch `json:"watches,omitempty"`
	// Reads are other kinds that it reads. They wake no keys.
	Reads []Watch `json:"reads,omitempty"`
	// Finalizer (domain/name) is added to each object before the policy first sees it. When the
	// object is being deleted, the policy is called with Deleting; the host removes the finalizer
	// after [Finalized].
	Finalizer string `json:"finalizer,omitempty"`
	// Previous enables Request.Previous: the object as of the last turn that succeeded.
	Previous bool `json:"previous,omitempty"`
	// EventSource is the reporter of Events (reportingController). If empty, the names of plugin
	// and controller.
	EventSource string `json:"eventSource,omitempty"`
	// Concurrency is how many keys are processed at once. 0 selects the host's default.
	Concurrency uint32  `json:"concurrency,omitempty"`
	Retry       Backoff `json:"retry,omitzero"`
	// Clusters is where the keys are: "home" (the default), "members" (all other clusters of the
	// host, with a queue for each), or a label selector of members.
	Clusters string `json:"clusters,omitempty"`
}

// Timer defines when a controller without a primary kind gets its turns.
type Timer struct {
	EveryMs uint32 `json:"everyMs,omitempty"`
	Once    bool   `json:"once,omitempty"`
}

// Every makes one turn at the start, and then one per period.
func Every(period time.Duration) *Timer {
	return &Timer{EveryMs: max(milliseconds(period), 1)}
}

// Once makes one turn at the start, and one after each swap.
func Once() *Timer {
	return &Timer{Once: true}
}

// Backoff delays a failing key by BaseMs * 2^failures, at most CapMs. 0 selects the host's default.
type Backoff struct {
	BaseMs uint32 `json:"baseMs,omitempty"`
	CapMs  uint32 `json:"capMs,omitempty"`
	// MaxRetries is the number of retries after which a failing key is dropped and reported, until
	// the object or the plugin changes. If nil, it is retried forever. See [Ptr].
	MaxRetries *uint32 `json:"maxRetries,omitempty"`
	// Bucket is a rate limit for the retries of all keys together.
	Bucket Bucket `json:"bucket,omitzero"`
}

// Bucket is a rate limit.
type Bucket struct {
	PerSecond uint32 `json:"perSecond"`
	Burst     uint32 `json:"burst"`
}

// Ptr returns a pointer to a value, for optional fields.
func Ptr[T any](value T) *T {
	return &value
}

// Permission is what the plugin's effects may do.
type Permission struct {
	Kind
	Verbs []Verb `json:"verbs"`
	// Subresources limits the permission to these subresources. If empty, it covers the object
	// itself and no subresource.
	Subresources []string `json:"subresources,omitempty"`
	// Namespaces limits the permission to these namespaces. If empty, it covers all namespaces and
	// cluster-scoped objects.
	Namespaces []string `json:"namespaces,omitempty"`
	// Optional declares that the plugin also works without the permission: a Plugin object that is
	// not granted it runs without it, instead of not at all.
	Optional bool `json:"optional,omitempty"`
}

// Verb is what an effect does to an object.
type Verb string

// The verbs. VerbPatch covers [Apply], [MergePatch] and [JSONPatch].
const (
	VerbCreate Verb = "create"
	VerbPatch  Verb = "patch"
	VerbDelete Verb = "delete"
)
