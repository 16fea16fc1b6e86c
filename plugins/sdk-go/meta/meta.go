// Package meta has the common fields of objects: metadata, owner references and status conditions,
// under the names of k8s.io/apimachinery. They are plain data with a JSON form.
package meta

import (
	"slices"
	"time"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

// ObjectMeta is the part of an object's metadata that policies use. As a field of a policy's own
// type: Metadata meta.ObjectMeta.
type ObjectMeta struct {
	Name string `json:"name,omitempty"`
	// Namespace is empty for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`
	// UID differs between an object and one that was later created with the same name.
	UID string `json:"uid,omitempty"`
	// ResourceVersion is for equality only.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Generation counts changes of the spec; 0 for kinds that do not count them.
	Generation  int64             `json:"generation,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// DeletionTimestamp is when its deletion was requested.
	DeletionTimestamp *time.Time `json:"deletionTimestamp,omitempty"`
	// Finalizers must all be removed before it is deleted.
	Finalizers      []string         `json:"finalizers,omitempty"`
	OwnerReferences []OwnerReference `json:"ownerReferences,omitempty"`
}

// OwnerReference is an object's reference to an owner: it is deleted with the owner.
type OwnerReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Name is the owner's name. The owner is in the same namespace or cluster-scoped.
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Controller is whether this owner is the one that controls the object.
	Controller bool `json:"controller,omitempty"`
	// BlockOwnerDeletion is whether a foreground deletion of the owner waits for the object.
	BlockOwnerDeletion bool `json:"blockOwnerDeletion,omitempty"`
}

// ControllerReference returns what controllerutil.SetControllerReference writes: owner, an object
// of this kind, controls the object with this reference.
func ControllerReference(owner ObjectMeta, kind vmhost.Kind) OwnerReference {
	reference := Reference(owner, kind)
	reference.Controller, reference.BlockOwnerDeletion = true, true
	return reference
}

// Reference returns a plain owner reference: the object is deleted with its owner.
func Reference(owner ObjectMeta, kind vmhost.Kind) OwnerReference {
	return OwnerReference{APIVersion: kind.APIVersion(), Kind: kind.Kind, Name: owner.Name, UID: owner.UID}
}

// GetControllerOf returns the owner reference of the object's controller; nil if it has none.
func GetControllerOf(object ObjectMeta) *OwnerReference {
	for i := range object.OwnerReferences {
		if object.OwnerReferences[i].Controller {
			return &object.OwnerReferences[i]
		}
	}
	return nil
}

// IsControlledBy reports whether the object's controller is owner, by uid.
func IsControlledBy(object, owner ObjectMeta) bool {
	controller := GetControllerOf(object)
	return controller != nil && controller.UID == owner.UID
}

// ContainsFinalizer reports whether the object has this finalizer. The host adds and removes the
// one of the description: see vmhost.Controller.
func ContainsFinalizer(object ObjectMeta, finalizer string) bool {
	return slices.Contains(object.Finalizers, finalizer)
}
