package meta

// Status conditions, with the functions of k8s.io/apimachinery/pkg/api/meta.

import (
	"slices"
	"time"
)

// Condition is one aspect of an object's state, like metav1.Condition.
type Condition struct {
	// Type is the aspect, in CamelCase: Ready. A list contains at most one condition of a type.
	Type   string          `json:"type"`
	Status ConditionStatus `json:"status"`
	// ObservedGeneration is the object's generation that this status is based on; 0: unset.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LastTransitionTime is when Status last changed. [SetStatusCondition] fills it in.
	LastTransitionTime time.Time `json:"lastTransitionTime"`
	// Reason is the machine-readable reason, in CamelCase. The API server requires one.
	Reason string `json:"reason"`
	// Message is the human-readable text.
	Message string `json:"message"`
}

// ConditionStatus is whether a condition holds.
type ConditionStatus string

// The three values.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// SetStatusCondition puts condition into the list, in place of the one of its type. If the status
// changes, the transition time becomes that of condition, or else now. Returns whether anything
// changed.
func SetStatusCondition(conditions *[]Condition, condition Condition) bool {
	if condition.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = time.Now()
	}
	// The precision of metav1.Time.
	condition.LastTransitionTime = condition.LastTransitionTime.UTC().Truncate(time.Second)
	old := FindStatusCondition(*conditions, condition.Type)
	if old == nil {
		*conditions = append(*conditions, condition)
		return true
	}
	if old.Status == condition.Status {
		condition.LastTransitionTime = old.LastTransitionTime
	}
	changed := *old != condition
	*old = condition
	return changed
}

// RemoveStatusCondition removes the condition of this type from the list, and returns whether there
// was one.
func RemoveStatusCondition(conditions *[]Condition, conditionType string) bool {
	before := len(*conditions)
	*conditions = slices.DeleteFunc(*conditions, func(condition Condition) bool { return condition.Type == conditionType })
	return len(*conditions) != before
}

// FindStatusCondition returns the condition of this type in the list itself; nil if there is none.
func FindStatusCondition(conditions []Condition, conditionType string) *Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// IsStatusConditionTrue reports whether the condition of this type exists and holds.
func IsStatusConditionTrue(conditions []Condition, conditionType string) bool {
	return hasStatus(conditions, conditionType, ConditionTrue)
}

// IsStatusConditionFalse reports whether the condition of this type exists and does not hold.
func IsStatusConditionFalse(conditions []Condition, conditionType string) bool {
	return hasStatus(conditions, conditionType, ConditionFalse)
}

func hasStatus(conditions []Condition, conditionType string, status ConditionStatus) bool {
	condition := FindStatusCondition(conditions, conditionType)
	return condition != nil && condition.Status == status
}
