// __name__: greets each __kind__ in its status.
package main

import "github.com/vmhost/vmhost/plugins/sdk-go"

var kind = vmhost.Kind{Group: "__group__", Version: "__version__", Kind: "__kind__"}

// __kind__ has the fields that the policy reads.
type __kind__ struct {
	Spec   struct{ Who string }
	Status struct{ Message string }
}

func describe() vmhost.Description {
	watch := vmhost.Watch{Kind: kind, WantedFields: []string{"spec.who", "status.message"}}
	return vmhost.Description{
		Name:        "__name__",
		Version:     "0.1.0",
		Controllers: []vmhost.Controller{{Name: "__plural__", Primary: &watch}},
		Permissions: []vmhost.Permission{{Kind: kind, Verbs: []vmhost.Verb{vmhost.VerbPatch}, Subresources: []string{"status"}}},
	}
}

// reconcile runs one turn: it reads the object, and returns what the host must do.
func reconcile(request *vmhost.Request) (vmhost.Outcome, error) {
	object, err := vmhost.Object[__kind__](request)
	if err != nil || object == nil {
		return vmhost.AwaitChange(), err
	}
	who := object.Spec.Who
	if who == "" {
		who = "world"
	}
	message := "hello, " + who
	if object.Status.Message == message {
		return vmhost.AwaitChange(), nil
	}
	status := map[string]any{"status": map[string]any{"message": message}}
	return vmhost.AwaitChange(
		vmhost.MergePatch{Key: request.Key, Subresource: "status", Body: status},
		vmhost.NormalEvent("Greeted", "%s", message),
	), nil
}

func init() { vmhost.Export(vmhost.Policy{Describe: describe, Reconcile: reconcile}) }

// main is never called; the host calls the policy.
func main() {}
