// Command mpi runs the controller of Kubeflow's MPI operator against an API server: the operator's own program listens on a port
// that is written in its source, so two of them, or one beside anything else that has the port, do not run on one machine.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	"github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	mpischeme "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	"github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	volcano "volcano.sh/apis/pkg/client/clientset/versioned"
)

func main() {
	var settings options.ServerOption
	settings.AddFlags(flag.CommandLine)
	klog.InitFlags(nil)
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, &settings); err != nil {
		klog.Fatal(err)
	}
}

func run(ctx context.Context, settings *options.ServerOption) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS, config.Burst = float32(settings.QPS), settings.Burst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	jobs, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	groups, err := volcano.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := mpischeme.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	builtIn := informers.NewSharedInformerFactory(client, 0)
	own := externalversions.NewSharedInformerFactory(jobs, 0)
	running, err := controller.NewMPIJobController(
		ctx, client, jobs, groups, nil,
		builtIn.Core().V1().ConfigMaps(), builtIn.Core().V1().Secrets(), builtIn.Core().V1().Services(),
		builtIn.Batch().V1().Jobs(), builtIn.Core().V1().Pods(), builtIn.Scheduling().V1().PriorityClasses(),
		own.Kubeflow().V2beta1().MPIJobs(), settings)
	if err != nil {
		return err
	}
	builtIn.Start(ctx.Done())
	own.Start(ctx.Done())
	if running.PodGroupCtrl != nil {
		running.PodGroupCtrl.StartInformerFactory(ctx.Done())
	}
	return running.Run(settings.Threadiness, ctx.Done())
}
