package meta

// Status conditions, with the functions of k8s.io/apimachinery/pkg/api/meta.

import (
	"slices"
	"time"
)

// Condition is one aspect of an object's state, as metav1.Condition.
type Condition struct {
	// Type is which aspect, in CamelCase: Ready. At most one condition of a type is in a list.
	Type   string          `json:"type"`
	Status ConditionStatus `json:"status"`
	// ObservedGeneration is the object's generation that this was found for; 0: not said.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LastTransitionTime is when Status last changed. [SetStatusCondition] fills it in.
	LastTransitionTime time.Time `json:"lastTransitionTime"`
	// Reason is why, in CamelCase, for machines. The API server wants one.
	Reason string `json:"reason"`
	// Message is for people.
	Message string `json:"message"`
}

// ConditionStatus is whether a condition holds.
type ConditionStatus string

// The three answers.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// SetStatusCondition puts condition into the list, in place of the one of its type. The transition time moves only when the status changes: to the one that the
// condition carries, else to now. True if anything changed.
func SetStatusCondition(conditions *[]Condition, condition Condition) bool {
	if condition.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = time.Now()
	}
	// As metav1.Time writes it.
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

// RemoveStatusCondition takes the condition of this type out of the list. True if there was one.
func RemoveStatusCondition(conditions *[]Condition, conditionType string) bool {
	before := len(*conditions)
	*conditions = slices.DeleteFunc(*conditions, func(condition Condition) bool { return condition.Type == conditionType })
	return len(*conditions) != before
}

// FindStatusCondition is the condition of this type in the list itself; nil if there is none.
func FindStatusCondition(conditions []Condition, conditionType string) *Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// IsStatusConditionTrue is whether the condition of this type is there and holds.
func IsStatusConditionTrue(conditions []Condition, conditionType string) bool {
	return hasStatus(conditions, conditionType, ConditionTrue)
}

// IsStatusConditionFalse is whether the condition of this type is there and does not hold.
func IsStatusConditionFalse(conditions []Condition, conditionType string) bool {
	return hasStatus(conditions, conditionType, ConditionFalse)
}

func hasStatus(conditions []Condition, conditionType string, status ConditionStatus) bool {
	condition := FindStatusCondition(conditions, conditionType)
	return condition != nil && condition.Status == status
}
