// The policy of examples/fleet on multicluster-runtime: each VGPUInstance of each member cluster is
// marked with the name of its cluster and with its generation. Members are found by the kubeconfig
// provider, with its defaults. Everything the policy does not need is off: metrics, probes, leader
// election, limits on requests.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mccontroller "sigs.k8s.io/multicluster-runtime/pkg/controller"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"
)

var groupVersion = schema.GroupVersion{Group: "vgpu.example.com", Version: "v1beta1"}

// VGPUInstance is the kind of examples/fleet/manifests/vgpuinstance.yaml.
type VGPUInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VGPUInstanceSpec   `json:"spec,omitempty"`
	Status            VGPUInstanceStatus `json:"status,omitempty"`
}

// VGPUInstanceSpec has no pointers, so an assignment copies it.
type VGPUInstanceSpec struct {
	Cards int64 `json:"cards,omitempty"`
}

// VGPUInstanceStatus has no pointers, so an assignment copies it.
type VGPUInstanceStatus struct {
	ClusterID          string `json:"clusterId,omitempty"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
}

// VGPUInstanceList is the answer to a list.
type VGPUInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VGPUInstance `json:"items"`
}

// DeepCopyInto is as controller-gen would write it.
func (in *VGPUInstance) DeepCopyInto(out *VGPUInstance) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

// DeepCopyObject is as controller-gen would write it.
func (in *VGPUInstance) DeepCopyObject() runtime.Object {
	out := new(VGPUInstance)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject is as controller-gen would write it.
func (in *VGPUInstanceList) DeepCopyObject() runtime.Object {
	out := new(VGPUInstanceList)
	*out = *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	if in.Items != nil {
		out.Items = make([]VGPUInstance, len(in.Items))
		for i := range in.Items {
			in.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}

type reconciler struct {
	clusters mcmanager.Manager
}

func (r *reconciler) Reconcile(ctx context.Context, request mcreconcile.Request) (ctrl.Result, error) {
	member, err := r.clusters.GetCluster(ctx, request.ClusterName)
	if err != nil {
		return ctrl.Result{}, err
	}
	var instance VGPUInstance
	if err := member.GetClient().Get(ctx, request.NamespacedName, &instance); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	wanted := VGPUInstanceStatus{
		ClusterID:          request.ClusterName.String(),
		ObservedGeneration: instance.Generation,
	}
	if instance.Status == wanted {
		return ctrl.Result{}, nil
	}
	body, err := json.Marshal(map[string]VGPUInstanceStatus{"status": wanted})
	if err != nil {
		return ctrl.Result{}, err
	}
	patch := client.RawPatch(types.MergePatchType, body)
	return ctrl.Result{}, member.GetClient().Status().Patch(ctx, &instance, patch)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	scheme.AddKnownTypes(groupVersion, &VGPUInstance{}, &VGPUInstanceList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return scheme, nil
}

func newProvider(namespace string, scheme *runtime.Scheme) *kubeconfig.Provider {
	return kubeconfig.New(kubeconfig.Options{
		Namespace: namespace,
		ClusterOptions: []cluster.Option{
			func(options *cluster.Options) { options.Scheme = scheme },
		},
		// Without this client-go sends five requests a second to a member. For home
		// controller-runtime has no limit by itself.
		RESTOptions: []func(*rest.Config) error{
			func(config *rest.Config) error {
				config.QPS = -1
				return nil
			},
		},
	})
}

func run(namespace string, workers int) error {
	ctrl.SetLogger(klog.NewKlogr())
	ctx := ctrl.SetupSignalHandler()
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	provider := newProvider(namespace, scheme)
	mgr, err := mcmanager.New(config, provider, mcmanager.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return err
	}
	if err := provider.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	err = mcbuilder.ControllerManagedBy(mgr).
		Named("vgpuinstances").
		For(&VGPUInstance{}).
		WithOptions(mccontroller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{clusters: mgr})
	if err != nil {
		return err
	}
	home := mgr.GetLocalManager()
	err = home.Add(manager.RunnableFunc(func(ctx context.Context) error {
		// Waits for the provider's own informer: there is one per kind.
		if _, err := home.GetCache().GetInformer(ctx, &corev1.Secret{}); err != nil {
			return err
		}
		fmt.Println("peer: ready")
		return nil
	}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func main() {
	// controller-runtime itself defines the flag --kubeconfig.
	namespace := flag.String("namespace", "default", "the namespace of the Secrets")
	workers := flag.Int("workers", 10, "keys at once, in all members together")
	flag.Parse()
	if err := run(*namespace, *workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
