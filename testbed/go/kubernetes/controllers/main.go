// Command controllers runs a few of Kubernetes' own controllers against an API server: what kube-controller-manager would run,
// without the cloud providers and volume plugins that make it take half an hour to link.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/statefulset"

	corev1 "k8s.io/api/core/v1"
)

const (
	workers  = 2
	resync   = 10 * time.Minute
	newKinds = 5 * time.Second // how often new kinds are looked for; a cluster in a test does not live for long
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the kubeconfig of the cluster")
	contentType := flag.String("kube-api-content-type", "application/vnd.kubernetes.protobuf", "how bodies are sent, as kube-controller-manager has it")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		klog.Fatal(err)
	}
	config.QPS, config.Burst = 500, 1000
	if err := run(ctx, config, *contentType); err != nil {
		klog.Fatal(err)
	}
}

func run(ctx context.Context, plain *rest.Config, contentType string) error {
	typed := rest.CopyConfig(plain)
	typed.ContentType = contentType
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(plain)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(client, resync)
	started := make(chan struct{})
	begin, err := starters(ctx, client, metadataClient, shared, started)
	if err != nil {
		return err
	}
	for _, each := range begin {
		go each(ctx)
	}
	shared.Start(ctx.Done())
	close(started)
	<-ctx.Done()
	return nil
}

// starters makes the controllers, which ask the factory for what they watch, and returns what runs them.
func starters(
	ctx context.Context, client kubernetes.Interface, metadataClient metadata.Interface,
	shared informers.SharedInformerFactory, started <-chan struct{},
) ([]func(context.Context), error) {
	core, apps, batch := shared.Core().V1(), shared.Apps().V1(), shared.Batch().V1()
	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), client)
	if err != nil {
		return nil, err
	}
	jobs, err := job.NewController(ctx, client, core.Pods(), batch.Jobs(), nil, nil)
	if err != nil {
		return nil, err
	}
	replicaSets := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, replicaset.BurstReplicas)
	statefulSets := statefulset.NewStatefulSetController(
		ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(), client)
	namespaces := namespace.NewNamespaceController(
		ctx, client, metadataClient, client.Discovery().ServerPreferredNamespacedResources,
		core.Namespaces(), resync, corev1.FinalizerKubernetes)
	collect, err := collector(ctx, client, metadataClient, shared, started)
	if err != nil {
		return nil, err
	}
	return append(collect,
		func(ctx context.Context) { deployments.Run(ctx, workers) },
		func(ctx context.Context) { jobs.Run(ctx, workers) },
		func(ctx context.Context) { replicaSets.Run(ctx, workers) },
		func(ctx context.Context) { statefulSets.Run(ctx, workers) },
		func(ctx context.Context) { namespaces.Run(ctx, workers) },
	), nil
}

// collector makes the garbage collector: one loop that collects, one that looks for new kinds.
func collector(
	ctx context.Context, client kubernetes.Interface, metadataClient metadata.Interface,
	shared informers.SharedInformerFactory, started <-chan struct{},
) ([]func(context.Context), error) {
	var found discovery.DiscoveryInterface = client.Discovery()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	both := informerfactory.NewInformerFactory(shared, metadatainformer.NewSharedInformerFactory(metadataClient, resync))
	made, err := garbagecollector.NewGarbageCollector(
		ctx, client, metadataClient, mapper, garbagecollector.DefaultIgnoredResources(), both, started)
	if err != nil {
		return nil, err
	}
	return []func(context.Context){
		func(ctx context.Context) { made.Run(ctx, workers, 30*time.Second) },
		func(ctx context.Context) { made.Sync(ctx, found, newKinds) },
	}, nil
}
