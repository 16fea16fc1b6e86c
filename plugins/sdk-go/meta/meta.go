// Package meta is what all objects have: metadata, owner references and status conditions, under the names of k8s.io/apimachinery. Plain data, in and out of
// JSON.
package meta

import (
	"slices"
	"time"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

// ObjectMeta is the part of an object's metadata that policies look at. As a field of a policy's own type: Metadata meta.ObjectMeta.
type ObjectMeta struct {
	Name string `json:"name,omitempty"`
	// Namespace is empty for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`
	// UID : an object that was deleted and created again has another.
	UID string `json:"uid,omitempty"`
	// ResourceVersion is for equality only.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Generation counts the changes of the specification; 0 for kinds that do not count them.
	Generation  int64             `json:"generation,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// DeletionTimestamp is since when it is being deleted.
	DeletionTimestamp *time.Time `json:"deletionTimestamp,omitempty"`
	// Finalizers are who must let go of it before it is gone.
	Finalizers      []string         `json:"finalizers,omitempty"`
	OwnerReferences []OwnerReference `json:"ownerReferences,omitempty"`
}

// OwnerReference is an object's pointer to one that it belongs to: it is deleted with it.
type OwnerReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Name is the owner's, which is in the same namespace or cluster-scoped.
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Controller is whether this owner is the one that controls the object.
	Controller bool `json:"controller,omitempty"`
	// BlockOwnerDeletion is whether the owner stays until the object is gone, when it is deleted in the foreground.
	BlockOwnerDeletion bool `json:"blockOwnerDeletion,omitempty"`
}

// ControllerReference is what controllerutil.SetControllerReference writes: owner, an object of this kind, controls the object that carries it.
func ControllerReference(owner ObjectMeta, kind vmhost.Kind) OwnerReference {
	reference := Reference(owner, kind)
	reference.Controller, reference.BlockOwnerDeletion = true, true
	return reference
}

// Reference is a plain owner: the object is deleted with it, no more.
func Reference(owner ObjectMeta, kind vmhost.Kind) OwnerReference {
	return OwnerReference{APIVersion: kind.APIVersion(), Kind: kind.Kind, Name: owner.Name, UID: owner.UID}
}

// GetControllerOf is the owner reference of the object's controller; nil if it has none.
func GetControllerOf(object ObjectMeta) *OwnerReference {
	for i := range object.OwnerReferences {
		if object.OwnerReferences[i].Controller {
			return &object.OwnerReferences[i]
		}
	}
	return nil
}

// IsControlledBy is whether the object's controller is this one, by uid.
func IsControlledBy(object, owner ObjectMeta) bool {
	controller := GetControllerOf(object)
	return controller != nil && controller.UID == owner.UID
}

// ContainsFinalizer is whether the object carries this finalizer. The host puts on and takes off the one of the description: see vmhost.Controller.
func ContainsFinalizer(object ObjectMeta, finalizer string) bool {
	return slices.Contains(object.Finalizers, finalizer)
}
