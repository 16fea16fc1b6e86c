// The same policy on controller-runtime, typed, in kubebuilder's layout: a manager, one controller,
// four workers. Everything the policy does not need is off: metrics, probes, leader election.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var groupVersion = schema.GroupVersion{Group: "cloud.waibizi.com", Version: "v1"}

var complete = client.RawPatch(types.MergePatchType, []byte(`{"spec":{"status":"complete"}}`))

// VirtualMachine is the kind of plugins/vm/manifests/crd.yaml.
type VirtualMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VirtualMachineSpec `json:"spec,omitempty"`
}

// VirtualMachineSpec has no pointers, so an assignment copies it.
type VirtualMachineSpec struct {
	UUID   string `json:"uuid,omitempty"`
	Name   string `json:"name,omitempty"`
	Image  string `json:"image,omitempty"`
	Memory int64  `json:"memory,omitempty"`
	Disk   int64  `json:"disk,omitempty"`
	Status string `json:"status,omitempty"`
}

// VirtualMachineList is the answer to a list.
type VirtualMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachine `json:"items"`
}

// DeepCopyInto is as controller-gen would write it.
func (in *VirtualMachine) DeepCopyInto(out *VirtualMachine) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

// DeepCopyObject is as controller-gen would write it.
func (in *VirtualMachine) DeepCopyObject() runtime.Object {
	out := new(VirtualMachine)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject is as controller-gen would write it.
func (in *VirtualMachineList) DeepCopyObject() runtime.Object {
	out := new(VirtualMachineList)
	*out = *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	if in.Items != nil {
		out.Items = make([]VirtualMachine, len(in.Items))
		for i := range in.Items {
			in.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}

type reconciler struct {
	client.Client
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var vm VirtualMachine
	if err := r.Get(ctx, request.NamespacedName, &vm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if vm.Spec.Status != "creating" {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Patch(ctx, &vm, complete)
}

func run(namespace string, workers int) error {
	ctrl.SetLogger(klog.NewKlogr())
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(groupVersion, &VirtualMachine{}, &VirtualMachineList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&VirtualMachine{}).
		Named("virtualmachines").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{mgr.GetClient()})
	if err != nil {
		return err
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		// Waits for the controller's own informer: there is one per kind.
		if _, err := mgr.GetCache().GetInformer(ctx, &VirtualMachine{}); err != nil {
			return err
		}
		fmt.Println("race: synced")
		return nil
	}))
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func main() {
	// controller-runtime itself defines the flag --kubeconfig.
	namespace := flag.String("namespace", "default", "the namespace to watch")
	workers := flag.Int("workers", 4, "keys at once")
	flag.Parse()
	if err := run(*namespace, *workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
