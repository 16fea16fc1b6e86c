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
//	func main() {} // is never called: the host calls the policy
//
// A policy is a plain function: its own `go test` calls it natively with a [Request] and looks at the [Outcome]. What reads the cluster or the settings is
// called within a run of [github.com/vmhost/vmhost/plugins/sdk-go/vmhosttest.Host].
//
// For those who know controller-runtime:
//   - Reconcile(ctx, req) (Result, error) is [Policy].Reconcile; its results are [RequeueAfter], [Requeue], an error, a [TerminalError].
//   - client.Get and List, which read the cache, are [Get] and [List]; mgr.GetAPIReader() is [GetLive] and [ListLive].
//   - client.Create, Patch, Delete and the event recorder are the effects of an [Outcome].
//   - log.FromContext(ctx) is log/slog, whose default logger is the host's log.
//   - What apimachinery and controllerutil have for metadata, owner references and conditions is in the package meta.
package vmhost

// Policy is what a plugin is.
type Policy struct {
	// Describe says which kinds wake the policy, and what it may do. It must always answer the same.
	Describe func() Description
	// Reconcile is one turn: look at the snapshot, return what is to be done. An error is a transient failure: the key is tried again, rate limited, after the
	// effects that came along with it. See [TerminalError] for the other kind. It must not count on memory of earlier calls.
	Reconcile func(*Request) (Outcome, error)
	// MapChanges is for watches with [MapGuest]: which objects of the controller's primary kind have to be looked at because of these changes. An error is a
	// transient failure: the same changes come again, rate limited. May be nil.
	MapChanges func(*MapRequest) ([]ObjectName, error)
}

// Kind is a group, version and kind.
type Kind struct {
	// Group is the API group without the version: apps, cloud.waibizi.com. Empty: the core group.
	Group string `json:"group,omitempty"`
	// Version is the version within the group: v1.
	Version string `json:"version"`
	// Kind is the kind in singular CamelCase: VirtualMachine.
	Kind string `json:"kind"`
}

// APIVersion is the group and version as objects say them: apps/v1, and v1 for the core group.
func (k Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// Key names an object of this kind. The namespace is empty exactly when the kind is cluster-scoped.
func (k Kind) Key(namespace, name string) ObjectKey {
	return ObjectKey{Kind: k, Namespace: namespace, Name: name}
}

// ObjectKey names one object of the cluster.
type ObjectKey struct {
	Kind Kind
	// Namespace is empty exactly when the kind is cluster-scoped.
	Namespace string
	Name      string
}

// String is the key for people: ConfigMap default/a.
func (k ObjectKey) String() string {
	return k.Kind.Kind + " " + ObjectName{k.Namespace, k.Name}.String()
}

// ObjectName names one object of a kind that is known from where it stands.
type ObjectName struct {
	// Namespace is empty exactly when the kind is cluster-scoped.
	Namespace string
	Name      string
}

// String is the name for people: default/a.
func (n ObjectName) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}
