// Package vmhost is for writing a vmhost policy in Go: three functions and plain data.
//
//	package main
//
//	import (
//		"log/slog"
//
//		"github.com/vmhost/vmhost/plugins/sdk-go"
//	)
//
//	var configMap = vmhost.Kind{Version: "v1", Kind: "ConfigMap"}
//
//	func describe() vmhost.Description {
//		return vmhost.Description{Name: "hello", Controllers: []vmhost.Controller{
//			{Name: "greeter", Primary: &vmhost.Watch{Kind: configMap}},
//		}}
//	}
//
//	func reconcile(request *vmhost.Request) (vmhost.Outcome, error) {
//		slog.Info("hello", "name", request.Key.Name)
//		return vmhost.AwaitChange(), nil
//	}
//
//	func init() { vmhost.Export(vmhost.Policy{Describe: describe, Reconcile: reconcile}) }
//
//	func main() {} // never called: the host calls the policy
//
// A policy is a plain function: its own `go test` calls it natively with a [Request] and checks the
// [Outcome]. A test of a policy that reads the cluster or settings calls it within a run of
// [github.com/vmhost/vmhost/plugins/sdk-go/vmhosttest.Host].
//
// The equivalents of controller-runtime:
//   - Reconcile(ctx, req) (Result, error) is [Policy].Reconcile; its results are [RequeueAfter],
//     [Requeue], an error, a [TerminalError].
//   - client.Get and List, which read the cache, are [Get] and [List]; mgr.GetAPIReader() is
//     [GetLive] and [ListLive].
//   - client.Create, Patch, Delete and the event recorder are the effects of an [Outcome].
//   - log.FromContext(ctx) is log/slog, whose default logger is the host's log.
//   - The helpers of apimachinery and controllerutil for metadata, owner references and conditions
//     are in the package meta.
package vmhost

// Policy defines a plugin.
type Policy struct {
	// Describe returns the kinds that wake the policy, and what it may do. It must always return
	// the same.
	Describe func() Description
	// Reconcile runs one turn: it reads the snapshot and returns what the host must do. An error is
	// a transient failure: the host carries out the returned effects and retries the key, rate
	// limited. See [TerminalError] for permanent failures. It must not rely on memory of earlier
	// calls. May be nil in a plugin without controllers.
	Reconcile func(*Request) (Outcome, error)
	// MapChanges is for watches with [MapGuest]: it returns the objects of the controller's primary
	// kind to reconcile because of these changes. After an error the same changes come again, rate
	// limited. May be nil.
	MapChanges func(*MapRequest) ([]ObjectName, error)
	// Admit answers a review of one of the description's webhooks. An error is no answer: the
	// webhook's failure policy decides about the request. May be nil.
	Admit func(*Review) (Verdict, error)
	// Convert returns the objects of the batch in the desired version, in their order: any values
	// that encoding/json writes. An error fails the client's request with its text. May be nil.
	Convert func(*Batch) ([]any, error)
}

// Kind is a group, version and kind.
type Kind struct {
	// Group is the API group without the version: apps, cloud.waibizi.com. Empty for the core
	// group.
	Group string `json:"group,omitempty"`
	// Version is the version within the group: v1.
	Version string `json:"version"`
	// Kind is the kind in singular CamelCase: VirtualMachine.
	Kind string `json:"kind"`
}

// APIVersion returns the group and version in the form of objects: apps/v1, and v1 for the core
// group.
func (k Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// Key names an object of this kind. The namespace is empty if and only if the kind is
// cluster-scoped.
func (k Kind) Key(namespace, name string) ObjectKey {
	return ObjectKey{Kind: k, Namespace: namespace, Name: name}
}

// ObjectKey names one object of the cluster.
type ObjectKey struct {
	Kind Kind
	// Namespace is empty if and only if the kind is cluster-scoped.
	Namespace string
	Name      string
}

// String returns the key for display: ConfigMap default/a.
func (k ObjectKey) String() string {
	return k.Kind.Kind + " " + ObjectName{k.Namespace, k.Name}.String()
}

// ObjectName names one object whose kind is known from the context.
type ObjectName struct {
	// Namespace is empty if and only if the kind is cluster-scoped.
	Namespace string
	Name      string
}

// String returns the name for display: default/a.
func (n ObjectName) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}
