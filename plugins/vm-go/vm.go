// The first policy in Go: a VirtualMachine that is creating becomes complete, or fails if nobody could make one like it.
package main

import (
	"log/slog"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

var virtualMachine = vmhost.Kind{Group: "cloud.waibizi.com", Version: "v1", Kind: "VirtualMachine"}

// VirtualMachine is what the policy looks at. A size that is not given is for the maker to choose.
type VirtualMachine struct {
	Spec struct {
		Status       string
		Memory, Disk *int64
	}
}

func describe() vmhost.Description {
	watch := vmhost.Watch{Kind: virtualMachine, WantedFields: []string{"spec.status", "spec.memory", "spec.disk"}}
	return vmhost.Description{
		Name:        "vm",
		Version:     "0.1.0",
		Controllers: []vmhost.Controller{{Name: "virtualmachines", Primary: &watch, EventSource: "vm-dynamic-controller"}},
		Permissions: []vmhost.Permission{{Kind: virtualMachine, Verbs: []vmhost.Verb{vmhost.VerbPatch}}},
	}
}

func reconcile(request *vmhost.Request) (vmhost.Outcome, error) {
	vm, err := vmhost.Object[VirtualMachine](request)
	if err != nil {
		return vmhost.Outcome{}, err
	}
	if vm == nil {
		slog.Info("the virtual machine " + request.Key.Name + " is gone")
		return vmhost.AwaitChange(), nil
	}
	if vm.Spec.Status != "creating" {
		return vmhost.AwaitChange(), nil
	}
	// Only what was seen is changed: a status or a size that a user has set meanwhile stays, and is looked at again.
	seen := vmhost.Test("/spec/status", "creating")
	for _, size := range []struct {
		field string
		value *int64
	}{{"memory", vm.Spec.Memory}, {"disk", vm.Spec.Disk}} {
		if size.value != nil && *size.value <= 0 {
			impossible := vmhost.Test("/spec/"+size.field, *size.value)
			return vmhost.AwaitChange(
				patch(request.Key, seen, impossible, vmhost.Replace("/spec/status", "fail")),
				vmhost.WarningEvent("Impossible", "spec.%s is %d, and must be more than 0", size.field, *size.value),
			), nil
		}
	}
	return vmhost.AwaitChange(
		patch(request.Key, seen, vmhost.Replace("/spec/status", "complete")),
		vmhost.NormalEvent("Completed", "The virtual machine is complete"),
	), nil
}

func patch(key vmhost.ObjectKey, operations ...vmhost.Operation) vmhost.Effect {
	return vmhost.JSONPatch{Key: key, Operations: operations}
}

func init() { vmhost.Export(vmhost.Policy{Describe: describe, Reconcile: reconcile}) }

func main() {}
