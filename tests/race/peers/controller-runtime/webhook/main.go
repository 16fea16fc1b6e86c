// The rule of examples/image-policy as a validating webhook of controller-runtime, typed, in
// kubebuilder's layout: a manager with its webhook server and one validator of Pods. The benchmark
// `webhooks` measures it beside vmhost. What the rule does not need is off: metrics, probes, leader
// election.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// path is where reviews of Pods are sent.
const path = "/validate-images"

// shown is how many images a refusal names.
const shown = 3

// validator lets images of these registries in.
type validator struct {
	allowed allowed
}

// ValidateCreate looks at all images.
func (v *validator) ValidateCreate(_ context.Context, pod *corev1.Pod) (admission.Warnings, error) {
	return nil, v.check(pod, nil)
}

// ValidateUpdate looks at the images that the Pod did not have before.
func (v *validator) ValidateUpdate(
	_ context.Context, old, pod *corev1.Pod,
) (admission.Warnings, error) {
	had := map[string]bool{}
	eachImage(old, func(_, image string) { had[image] = true })
	return nil, v.check(pod, had)
}

// ValidateDelete is never asked.
func (v *validator) ValidateDelete(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

// check returns an error that names the images which are not allowed.
func (v *validator) check(pod *corev1.Pod, had map[string]bool) error {
	var refused []string
	eachImage(pod, func(place, text string) {
		if had[text] {
			return
		}
		image, ok := parseImage(text)
		switch {
		case !ok:
			refused = append(refused, fmt.Sprintf("%s: %q is no name of an image", place, text))
		case !v.allowed.contains(image):
			refused = append(refused, fmt.Sprintf(
				"%s: the image %q is of %s, which is not allowed", place, text, image.registry))
		}
	})
	if len(refused) == 0 {
		return nil
	}
	more := ""
	if len(refused) > shown {
		more = fmt.Sprintf("; and %d more", len(refused)-shown)
		refused = refused[:shown]
	}
	return errors.New(strings.Join(refused, "; ") + more +
		"; allowed: " + strings.Join(v.allowed, ", "))
}

// eachImage visits all images of a Pod, each with the place that names it.
func eachImage(pod *corev1.Pod, visit func(place, image string)) {
	see := func(what, name, image string) {
		if image != "" {
			visit(what+" "+name, image)
		}
	}
	for i := range pod.Spec.Containers {
		see("container", pod.Spec.Containers[i].Name, pod.Spec.Containers[i].Image)
	}
	for i := range pod.Spec.InitContainers {
		see("init container", pod.Spec.InitContainers[i].Name, pod.Spec.InitContainers[i].Image)
	}
	for i := range pod.Spec.EphemeralContainers {
		of := &pod.Spec.EphemeralContainers[i].EphemeralContainerCommon
		see("ephemeral container", of.Name, of.Image)
	}
	for i := range pod.Spec.Volumes {
		if of := pod.Spec.Volumes[i].Image; of != nil {
			see("volume", pod.Spec.Volumes[i].Name, of.Reference)
		}
	}
}

func run(port int, certificates, registries string) error {
	ctrl.SetLogger(klog.NewKlogr())
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host:    "127.0.0.1",
			Port:    port,
			CertDir: certificates,
		}),
	})
	if err != nil {
		return err
	}
	err = ctrl.NewWebhookManagedBy(mgr, &corev1.Pod{}).
		WithValidator(&validator{parseAllowed(registries)}).
		WithValidatorCustomPath(path).
		Complete()
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func main() {
	// controller-runtime itself defines the flag --kubeconfig.
	port := flag.Int("port", 9443, "the port of loopback that serves reviews")
	certificates := flag.String("certificates", "", "a folder with tls.crt and tls.key")
	registries := flag.String("registries", "", "the registries that are allowed")
	flag.Parse()
	if err := run(*port, *certificates, *registries); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
