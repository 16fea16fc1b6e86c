// The first policy in Go: completes a VirtualMachine that is creating, or fails it if its size is
// impossible.
package main

import (
	"log/slog"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

var virtualMachine = vmhost.Kind{Group: "cloud.waibizi.com", Version: "v1", Kind: "VirtualMachine"}

// VirtualMachine has the fields that the policy reads. An absent size is the maker's choice.
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
	// Tests what was seen: if a user has changed the status or the size in the meantime, the patch
	// changes nothing and the host retries the key.
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
