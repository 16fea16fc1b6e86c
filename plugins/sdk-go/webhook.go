package vmhost

// The entries of a description for admission webhooks and conversions, as plain data. The host
// validates them, and its errors name the invalid field.

// Webhook is an admission webhook: which requests the API server asks about, and what it does
// without an answer. [Policy].Admit answers.
type Webhook struct {
	// Name is unique among the plugin's controllers, webhooks and conversions.
	Name string      `json:"name"`
	Type WebhookType `json:"type"`
	// Rules are the requests that the webhook is asked about.
	Rules []Rule `json:"rules"`
	// NamespaceSelector restricts them to objects of these namespaces.
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`
	// ObjectSelector restricts them to objects with these labels, before or after the change.
	ObjectSelector *LabelSelector `json:"objectSelector,omitempty"`
	// MatchConditions restrict them to those for which all CEL expressions are true.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`
	// FailurePolicy is what happens without an answer. If empty, [FailOnFailure].
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
	// SideEffects is None or NoneOnDryRun. If empty, None.
	SideEffects string `json:"sideEffects,omitempty"`
	// TimeoutSeconds is how long the API server waits for the answer, 1 to 30. 0 selects 10.
	TimeoutSeconds uint32 `json:"timeoutSeconds,omitempty"`
	// ReinvocationPolicy is Never or IfNeeded: whether a mutating webhook is asked again if a later
	// one changed the object. If empty, Never.
	ReinvocationPolicy string `json:"reinvocationPolicy,omitempty"`
	// MatchPolicy is Exact or Equivalent: whether it is asked about the same object in other
	// versions too. If empty, Equivalent.
	MatchPolicy string `json:"matchPolicy,omitempty"`
	// Reads are the kinds that it reads.
	Reads []Watch `json:"reads,omitempty"`
}

// WebhookType says whether a webhook may change objects.
type WebhookType string

// The types. A mutating webhook may return a patch.
const (
	Validating WebhookType = "validating"
	Mutating   WebhookType = "mutating"
)

// FailurePolicy is what the API server does without an answer.
type FailurePolicy string

// The policies: refuse the request, or let it through.
const (
	FailOnFailure   FailurePolicy = "Fail"
	IgnoreOnFailure FailurePolicy = "Ignore"
)

// Rule selects requests. Each list may contain "*".
type Rule struct {
	// APIGroups; the core group is the empty string.
	APIGroups   []string `json:"apiGroups"`
	APIVersions []string `json:"apiVersions"`
	// Resources are plurals: pods, pods/exec.
	Resources  []string          `json:"resources"`
	Operations []ReviewOperation `json:"operations"`
	// Scope is *, Namespaced or Cluster. If empty, *.
	Scope string `json:"scope,omitempty"`
}

// MatchCondition is a CEL expression over object, oldObject and request.
type MatchCondition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// LabelSelector selects by labels; all conditions must hold.
type LabelSelector struct {
	MatchLabels      map[string]string  `json:"matchLabels,omitempty"`
	MatchExpressions []LabelRequirement `json:"matchExpressions,omitempty"`
}

// LabelRequirement is a condition on one label: In, NotIn, Exists or DoesNotExist.
type LabelRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// Conversion names a custom resource whose versions [Policy].Convert converts into each other.
type Conversion struct {
	// Name is unique among the plugin's controllers, webhooks and conversions.
	Name  string `json:"name"`
	Group string `json:"group"`
	Kind  string `json:"kind"`
	// Resource is the plural.
	Resource string   `json:"resource"`
	Versions []string `json:"versions"`
	// Reads are the kinds that it reads. Not its own kind: to fill that cache, the API server would
	// ask for a conversion.
	Reads []Watch `json:"reads,omitempty"`
}
