package vmhost

// Admission: what an API server asks before it stores a change, and the policy's verdict.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Review is a change that somebody asked for: the request of an AdmissionReview.
type Review struct {
	// Webhook is the name of the webhook in the description that this review is for.
	Webhook string `json:"-"`
	// UID identifies the review.
	UID string `json:"uid"`
	// Kind and Resource are those of the object, in the version that the webhook's rules name.
	Kind     Kind           `json:"kind"`
	Resource ReviewResource `json:"resource"`
	// SubResource such as status or exec; empty for the object itself.
	SubResource string `json:"subResource"`
	// Name is empty for a new object with a generateName.
	Name string `json:"name"`
	// Namespace is empty for a cluster-scoped object.
	Namespace string          `json:"namespace"`
	Operation ReviewOperation `json:"operation"`
	// UserInfo is who asks.
	UserInfo UserInfo `json:"userInfo"`
	// Object is the object as it would be stored. Nil for a deletion. See [ReviewObject].
	Object json.RawMessage `json:"object"`
	// OldObject is the object as it is stored. Nil for a new object. See [OldObject].
	OldObject json.RawMessage `json:"oldObject"`
	// Options are the options of the request (CreateOptions and so on).
	Options json.RawMessage `json:"options"`
	// DryRun tells that nothing will be stored. The verdict must be the same.
	DryRun bool `json:"dryRun"`
}

// ReviewResource is a group, version and resource.
type ReviewResource struct {
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
}

// UserInfo is the user who asks.
type UserInfo struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

// ReviewOperation is what somebody wants to do with an object.
type ReviewOperation string

// The operations. ReviewAny is for rules.
const (
	ReviewCreate  ReviewOperation = "CREATE"
	ReviewUpdate  ReviewOperation = "UPDATE"
	ReviewDelete  ReviewOperation = "DELETE"
	ReviewConnect ReviewOperation = "CONNECT"
	ReviewAny     ReviewOperation = "*"
)

// ReviewOf reads the request of an AdmissionReview; also for tests.
func ReviewOf(webhook string, request json.RawMessage) (*Review, error) {
	review, err := decode[Review](request)
	if err != nil {
		return nil, fmt.Errorf("the review cannot be read: %w", err)
	}
	review.Webhook = webhook
	for _, text := range []*json.RawMessage{&review.Object, &review.OldObject, &review.Options} {
		if bytes.Equal(*text, []byte("null")) {
			*text = nil
		}
	}
	return review, nil
}

// ReviewObject returns the review's object as a type of the policy's own, as [Object] does; nil for
// a deletion.
func ReviewObject[T any](review *Review) (*T, error) {
	return Decode[T](review.Object)
}

// OldObject is like [ReviewObject], for the object as it is stored; nil for a new object.
func OldObject[T any](review *Review) (*T, error) {
	return Decode[T](review.OldObject)
}

// Verdict is whether a request may go on, and how. [Allow], [Deny], [DenyAs] and [Mutate] make it.
type Verdict struct {
	Allowed bool
	// Status explains a refusal.
	Status ReviewStatus
	// Patch changes the object; only of a mutating webhook.
	Patch []Operation
	// Warnings are shown to the user, whatever the verdict is.
	Warnings []string
	// AuditAnnotations are added to the request's audit event.
	AuditAnnotations map[string]string
}

// ReviewStatus is what a user sees of a refusal.
type ReviewStatus struct {
	Message string `json:"message,omitempty"`
	// Reason is CamelCase, for machines: Forbidden.
	Reason string `json:"reason,omitempty"`
	// Code is the HTTP status, 400 to 599.
	Code uint16 `json:"code,omitempty"`
}

// Allow allows the request.
func Allow() Verdict {
	return Verdict{Allowed: true}
}

// Deny refuses the request: 403 Forbidden with this text, which the user sees, in the form of
// [fmt.Sprintf].
func Deny(format string, values ...any) Verdict {
	return DenyAs(403, "Forbidden", fmt.Sprintf(format, values...))
}

// DenyAs refuses the request with another HTTP status and its reason, such as 409 and Conflict.
func DenyAs(code uint16, reason, message string) Verdict {
	return Verdict{Status: ReviewStatus{Message: message, Reason: reason, Code: code}}
}

// Warning adds a warning for the user, in the form of [fmt.Sprintf]. At most 120 characters are
// shown by all clients.
func (v Verdict) Warning(format string, values ...any) Verdict {
	v.Warnings = append(v.Warnings[:len(v.Warnings):len(v.Warnings)], fmt.Sprintf(format, values...))
	return v
}

// AuditAnnotation adds an annotation to the request's audit event. The API server puts the
// webhook's name before the key.
func (v Verdict) AuditAnnotation(key, value string) Verdict {
	annotations := map[string]string{key: value}
	for other, text := range v.AuditAnnotations {
		if other != key {
			annotations[other] = text
		}
	}
	v.AuditAnnotations = annotations
	return v
}

// With adds operations that change the object: [Add], [Replace], [Remove], [Test].
func (v Verdict) With(operations ...Operation) Verdict {
	v.Patch = append(v.Patch[:len(v.Patch):len(v.Patch)], operations...)
	return v
}

// MarshalJSON writes the verdict as the contract does: an AdmissionResponse without uid, with the
// patch as a list.
func (v Verdict) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Allowed          bool              `json:"allowed"`
		Status           ReviewStatus      `json:"status,omitzero"`
		Patch            []Operation       `json:"patch,omitempty"`
		Warnings         []string          `json:"warnings,omitempty"`
		AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
	}(v))
}

// Mutate allows the request with what change does to the object; a request without an object is
// allowed as it is.
//
// T may have only the fields that the policy needs: what it lacks stays as it is, and what change
// leaves alone is not in the patch, even if T would write it otherwise. What T does not write any
// more is removed with all that it has. The patch is the smallest one that this package finds;
// without a difference there is none.
func Mutate[T any](review *Review, change func(*T) error) (Verdict, error) {
	object, err := ReviewObject[T](review)
	if err != nil || object == nil {
		return Allow(), err
	}
	whole, err := tree(review.Object)
	if err != nil {
		return Verdict{}, err
	}
	before, err := treeOf(object)
	if err != nil {
		return Verdict{}, err
	}
	if err := change(object); err != nil {
		return Verdict{}, err
	}
	after, err := treeOf(object)
	if err != nil {
		return Verdict{}, err
	}
	return Allow().With(diff(whole, carry(whole, before, after))...), nil
}

// tree reads a document with numbers as they are written.
func tree(text json.RawMessage) (any, error) {
	value, err := decode[any](text)
	if err != nil {
		return nil, fmt.Errorf("the object cannot be read: %w", err)
	}
	return *value, nil
}

func treeOf(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("the object cannot be written as JSON: %w", err)
	}
	return tree(text)
}

var errNoAdmit = errors.New("the policy has no Admit")
