package main

// The reviews: admission and conversion.

import (
	"errors"
	"slices"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

func admit(review *vmhost.Review) (vmhost.Verdict, error) {
	object := review.Object
	if object == nil {
		object = review.OldObject
	}
	found, err := vmhost.Decode[struct{ Spec struct{ Case string } }](object)
	if err != nil {
		return vmhost.Verdict{}, err
	}
	switch found.Spec.Case {
	case "allow":
		return vmhost.Allow().Warning("careful: ☃").AuditAnnotation("user", review.UserInfo.Username), nil
	case "deny":
		return vmhost.Deny("no: ☃"), nil
	case "deny-as":
		return vmhost.DenyAs(409, "Conflict", "taken"), nil
	case "delete":
		return vmhost.Allow().Warning("deleted"), nil
	case "review":
		return tell(review), nil
	case "mutate":
		return vmhost.Mutate(review, mutate)
	case "operations":
		return vmhost.Allow().With(vmhost.Add("/spec/a", 1), vmhost.Remove("/spec/b")), nil
	case "same":
		return vmhost.Mutate(review, func(*map[string]any) error { return nil })
	case "error":
		return vmhost.Verdict{}, errors.New("broken on purpose")
	}
	return vmhost.Deny("unknown case %s", found.Spec.Case), nil
}

func tell(review *vmhost.Review) vmhost.Verdict {
	dryRun := ""
	if review.DryRun {
		dryRun = "dry run"
	}
	verdict := vmhost.Allow()
	for _, text := range []string{
		review.UID, string(review.Operation), review.Kind.Kind, review.Resource.Resource, review.SubResource, review.Name, review.Namespace, dryRun,
	} {
		verdict = verdict.Warning("%s", text)
	}
	return verdict
}

// mutable lacks most of the object, which stays as it is.
type mutable struct {
	Spec struct {
		Text string         `json:"text"`
		Old  *int           `json:"old,omitempty"`
		List []int          `json:"list"`
		ABC  map[string]any `json:"a/b~c,omitempty"`
	} `json:"spec"`
}

func mutate(object *mutable) error {
	object.Spec.ABC = map[string]any{"x": nil}
	object.Spec.Text = "b"
	object.Spec.Old = nil
	object.Spec.List = slices.Insert(object.Spec.List, 1, 9)
	return nil
}

func convert(batch *vmhost.Batch) ([]any, error) {
	before, after := "name", "case"
	if batch.Version() == "v2" {
		before, after = after, before
	}
	return batch.Each(func(object map[string]any, _ string) error {
		spec, _ := object["spec"].(map[string]any)
		value, ok := spec[before]
		if value == "bad" {
			return errors.New("bad on purpose")
		}
		if ok {
			delete(spec, before)
			spec[after] = value
		}
		return nil
	})
}
