// The seed: the VirtualMachine controller as it was first written, on client-go's dynamic informer.
// Add events put namespace/name on a named rate-limiting queue; a worker reads the lister and, if
// spec.status is "creating", sends one merge patch. As there, updates and deletions enqueue
// nothing.
//
// Mistakes without a cost are corrected: workers start after the cache has synced, a deleted object
// is done, the namespace is a flag.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

var resource = schema.GroupVersionResource{Group: "cloud.waibizi.com", Version: "v1", Resource: "virtualmachines"}

var complete = []byte(`{"spec":{"status":"complete"}}`)

type controller struct {
	client dynamic.Interface
	lister cache.GenericLister
	queue  workqueue.TypedRateLimitingInterface[string]
}

func (c *controller) worker(ctx context.Context) {
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if err := c.sync(ctx, key); err != nil {
			klog.ErrorS(err, "sync failed", "key", key)
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

func (c *controller) sync(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	object, err := c.lister.ByNamespace(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	vm := object.(*unstructured.Unstructured)
	status, _, err := unstructured.NestedString(vm.Object, "spec", "status")
	if err != nil || status != "creating" {
		return err
	}
	_, err = c.client.Resource(resource).Namespace(namespace).
		Patch(ctx, name, types.MergePatchType, complete, metav1.PatchOptions{})
	return err
}

func configuration(file string) (*rest.Config, error) {
	if config, err := rest.InClusterConfig(); err == nil {
		return config, nil
	}
	return clientcmd.BuildConfigFromFlags("", file)
}

func run(ctx context.Context, kubeconfig, namespace string, workers int) error {
	config, err := configuration(kubeconfig)
	if err != nil {
		return err
	}
	// The default allows 5 writes per second; the race measures the code, not this setting.
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	informer := factory.ForResource(resource)
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "virtualmachines"},
	)
	c := &controller{client: client, lister: informer.Lister(), queue: queue}
	handle, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
				queue.Add(key)
			}
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
		return ctx.Err()
	}
	fmt.Println("race: synced")
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { c.worker(ctx) })
	}
	<-ctx.Done()
	queue.ShutDown()
	group.Wait()
	return nil
}

func main() {
	kubeconfig := flag.String("kubeconfig", clientcmd.RecommendedHomeFile, "a kubeconfig")
	namespace := flag.String("namespace", "default", "the namespace to watch")
	workers := flag.Int("workers", 4, "keys at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace, *workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
