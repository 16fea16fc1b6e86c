package vmhost

// Which objects of a kind a controller watches, and which keys a change wakes.

import "encoding/json"

// Watch is a kind that a controller watches or reads. With the kind alone it covers all objects.
type Watch struct {
	Kind
	// LabelSelector restricts the watch to objects with these labels, in kubectl's form. Other
	// objects are not in the cache.
	LabelSelector string `json:"labelSelector,omitempty"`
	// FieldSelector restricts the watch to objects with these fields, such as metadata.name=x.
	FieldSelector string `json:"fieldSelector,omitempty"`
	// WantedFields restricts snapshots to these fields (dotted paths) besides apiVersion, kind and
	// metadata. If nil, all fields.
	WantedFields []string `json:"wantedFields,omitzero"`
	// MetadataOnly restricts snapshots to apiVersion, kind and metadata.
	MetadataOnly bool `json:"metadataOnly,omitempty"`
	// Indexes by name: the path of a field, such as spec.nodeName or
	// spec.volumes[*].secret.secretName. For [Query].Index and [MapIndex].
	Indexes map[string]string `json:"indexes,omitempty"`
	// Predicates restrict the changes that wake keys.
	Predicates *Predicates `json:"predicates,omitempty"`
	// Map is for a controller's Watches: which keys a change wakes.
	Map Map `json:"map,omitzero"`
	// Live is for a controller's Reads: nothing is cached, and only live reads work.
	Live bool `json:"live,omitempty"`
}

// Predicates restrict the changes that wake keys; all conditions must hold. A deletion and the
// beginning of a deletion always wake keys.
type Predicates struct {
	// Changed requires of an update that at least one of these differs. If empty, any update.
	Changed []Aspect `json:"changed,omitempty"`
	// LabelSelector requires that the old or the new object has these labels.
	LabelSelector string `json:"labelSelector,omitempty"`
	// FieldSelector requires that the old or the new object has these fields, on any path:
	// spec.nodeName=a.
	FieldSelector string `json:"fieldSelector,omitempty"`
	// CEL is an expression over object and oldObject (null for a new object). An error wakes the
	// keys.
	CEL string `json:"cel,omitempty"`
}

// Aspect is a part of an object that may change.
type Aspect string

// The aspects. The generation counts changes of the spec, for kinds that count them.
const (
	GenerationChanged      Aspect = "generation"
	LabelsChanged          Aspect = "labels"
	AnnotationsChanged     Aspect = "annotations"
	ResourceVersionChanged Aspect = "resourceVersion"
)

// Map defines which keys a change of a watched object wakes. The old and the new object are both
// mapped.
type Map struct {
	by, value string
}

// The maps without a parameter.
var (
	// MapName wakes the primary of the same namespace and name.
	MapName = Map{by: "name"}
	// MapOwner wakes the primaries in its owner references.
	MapOwner = Map{by: "owner"}
	// MapController wakes the primary in its controller reference.
	MapController = Map{by: "controller"}
	// MapGuest wakes the keys that [Policy].MapChanges returns.
	MapGuest = Map{by: "guest"}
)

// MapLabel wakes the primary whose name is the value of this label.
func MapLabel(label string) Map { return Map{"label", label} }

// MapField wakes the primaries whose names are the values of this field.
func MapField(path string) Map { return Map{"field", path} }

// MapIndex wakes all primaries whose index of this name contains the object's name.
func MapIndex(index string) Map { return Map{"index", index} }

// MarshalJSON writes "name", or {"label": "app"}.
func (m Map) MarshalJSON() ([]byte, error) {
	switch m.by {
	case "label", "field", "index":
		return json.Marshal(map[string]string{m.by: m.value})
	}
	return json.Marshal(m.by)
}
