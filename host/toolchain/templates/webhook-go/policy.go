// __name__: a __kind__ is stored only if its spec.who names somebody.
package main

import "github.com/vmhost/vmhost/plugins/sdk-go"

// __kind__ has the fields that the policy reads.
type __kind__ struct {
	Spec struct{ Who string }
}

func describe() vmhost.Description {
	rule := vmhost.Rule{
		APIGroups:   []string{"__group__"},
		APIVersions: []string{"__version__"},
		Resources:   []string{"__plural__"},
		Operations:  []vmhost.ReviewOperation{vmhost.ReviewCreate, vmhost.ReviewUpdate},
	}
	return vmhost.Description{
		Name:     "__name__",
		Version:  "0.1.0",
		Webhooks: []vmhost.Webhook{{Name: "who", Type: vmhost.Validating, Rules: []vmhost.Rule{rule}}},
	}
}

// admit answers one review: it reads what would be stored, and returns whether it may be.
func admit(review *vmhost.Review) (vmhost.Verdict, error) {
	object, err := vmhost.ReviewObject[__kind__](review)
	if err != nil || object == nil { // nil: a deletion
		return vmhost.Allow(), err
	}
	if object.Spec.Who == "" {
		return vmhost.Deny("spec.who must name somebody"), nil
	}
	return vmhost.Allow(), nil
}

func init() { vmhost.Export(vmhost.Policy{Describe: describe, Admit: admit}) }

// main is never called; the host calls the policy.
func main() {}
