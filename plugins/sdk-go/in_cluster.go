package vmhost

// Writes an effect that names its cluster in the form of the contract: as JSON, in an other effect.

import (
	"encoding/json"
	"fmt"

	wire "github.com/vmhost/vmhost/plugins/sdk-go/internal/bindings/imports/vmhost_plugin_types"
	wit "github.com/vmhost/vmhost/plugins/sdk-go/internal/wit/types"
)

type inClusterForm struct {
	Cluster *string `json:"cluster"`
	Effect  any     `json:"effect"`
}

type applyForm struct {
	Object         json.RawMessage `json:"object"`
	Subresource    *string         `json:"subresource,omitempty"`
	Force          bool            `json:"force"`
	CreateIfAbsent bool            `json:"createIfAbsent"`
	IfVersion      *string         `json:"ifVersion,omitempty"`
}

type patchForm struct {
	Key         keyForm         `json:"key"`
	Subresource *string         `json:"subresource,omitempty"`
	Type        string          `json:"type"`
	Body        json.RawMessage `json:"body"`
	IfVersion   *string         `json:"ifVersion,omitempty"`
}

type createForm struct {
	Object json.RawMessage `json:"object"`
}

type deleteForm struct {
	Key         keyForm `json:"key"`
	UID         *string `json:"uid,omitempty"`
	IfVersion   *string `json:"ifVersion,omitempty"`
	Propagation string  `json:"propagation,omitempty"`
}

type keyForm struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Namespace  *string `json:"namespace,omitempty"`
	Name       string  `json:"name"`
}

func inClusterToWire(e InCluster) (wire.Effect, error) {
	form, err := effectForm(e.Effect)
	if err != nil {
		return wire.Effect{}, err
	}
	body, err := document("the effect in a cluster", inClusterForm{Cluster: pointer(some(e.Cluster)), Effect: form})
	return wire.MakeEffectOther(wire.Other{Name: "in-cluster", Body: body}), err
}

// effectForm checks the effect as any other, and returns what is written of it.
func effectForm(effect Effect) (any, error) {
	switch effect.(type) {
	case Event, Other, InCluster:
		return nil, fmt.Errorf("%T cannot be in a named cluster: only an apply, patch, create or delete can", effect)
	}
	record, err := effectToWire(effect)
	if err != nil {
		return nil, err
	}
	switch e := effect.(type) {
	case Apply:
		apply := record.Apply()
		return map[string]any{"apply": applyForm{
			Object: bytesOf(apply.Object), Subresource: pointer(apply.Subresource), Force: apply.Force,
			CreateIfAbsent: apply.CreateIfAbsent, IfVersion: pointer(apply.IfVersion),
		}}, nil
	case MergePatch:
		return map[string]any{"patch": patchFormOf("merge", e.Key, record.Patch())}, nil
	case JSONPatch:
		return map[string]any{"patch": patchFormOf("json", e.Key, record.Patch())}, nil
	case Create:
		return map[string]any{"create": createForm{bytesOf(record.Create().Object)}}, nil
	case Delete:
		deleted := record.Delete()
		propagation := [...]string{DefaultPropagation: "", Background: "background", Foreground: "foreground", Orphan: "orphan"}[e.Propagation]
		return map[string]any{"delete": deleteForm{
			Key: keyFormOf(e.Key), UID: pointer(deleted.Uid), IfVersion: pointer(deleted.IfVersion), Propagation: propagation,
		}}, nil
	}
	return nil, fmt.Errorf("%T is no effect for a named cluster", effect)
}

func patchFormOf(kind string, key ObjectKey, patch wire.Patch) patchForm {
	return patchForm{
		Key: keyFormOf(key), Subresource: pointer(patch.Subresource), Type: kind, Body: bytesOf(patch.Body), IfVersion: pointer(patch.IfVersion),
	}
}

func keyFormOf(key ObjectKey) keyForm {
	return keyForm{APIVersion: key.Kind.APIVersion(), Kind: key.Kind.Kind, Namespace: pointer(some(key.Namespace)), Name: key.Name}
}

func pointer(text wit.Option[string]) *string {
	if text.IsNone() {
		return nil
	}
	value := text.Some()
	return &value
}
