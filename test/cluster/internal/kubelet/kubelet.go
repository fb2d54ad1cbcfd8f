package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"turnout/test/cluster/internal/images"
	"turnout/test/cluster/internal/network"
	"turnout/test/cluster/internal/runtime"
	"turnout/test/cluster/internal/volumes"
)

// Config is what a Kubelet needs.
type Config struct {
	Node     string           // name of its Node object
	Admin    *rest.Config     // may do everything that a kubelet does
	Network  *network.Network // of the node
	DNS      []netip.Addr     // name servers of pods
	Domain   string           // of the cluster; "" is cluster.local
	Dir      string           // folder for state, on a file system that the sandbox may mount on
	Cgroup   string           // parent of the containers' cgroups
	Images   *images.Store
	Serving  tls.Certificate // of the server on port 10250
	ClientCA *x509.CertPool  // signs the certificate of the API server

	// Backoff is how long a container waits before its second restart; each further wait is
	// twice as long, up to MaxBackoff. 0 is 200 ms and 5 s.
	Backoff, MaxBackoff time.Duration
}

// Kubelet runs the pods of one node.
type Kubelet struct {
	config   Config
	client   kubernetes.Interface
	runtime  *runtime.Runtime
	events   record.EventRecorder
	services corelisters.ServiceLister
	capacity v1.ResourceList

	dying  context.Context // ends when the node dies
	die    context.CancelFunc
	wg     sync.WaitGroup // pods
	mu     sync.Mutex
	pods   map[types.UID]*pod
	closed bool // no pod is added any more
}

// New returns a Kubelet; Run starts it.
func New(config Config) (*Kubelet, error) {
	if config.Domain == "" {
		config.Domain = "cluster.local"
	}
	if config.Backoff == 0 {
		config.Backoff = 200 * time.Millisecond
	}
	if config.MaxBackoff == 0 {
		config.MaxBackoff = 5 * time.Second
	}
	admin := rest.CopyConfig(config.Admin)
	admin.QPS, admin.Burst = -1, 0 // as fast as it can: tests wait for it
	var err error
	if config.Dir, err = filepath.Abs(config.Dir); err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	r, err := runtime.New(runtime.Config{Dir: config.Dir, Cgroup: config.Cgroup})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(config.Dir, "pods"), 0o711); err != nil {
		return nil, err
	}
	k := &Kubelet{config: config, client: client, runtime: r, pods: map[types.UID]*pod{}, capacity: capacity()}
	k.dying, k.die = context.WithCancel(context.Background())
	return k, nil
}

// capacity is what limits are when a container has none.
func capacity() v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:              resource.MustParse("4"),
		v1.ResourceMemory:           resource.MustParse("8Gi"),
		v1.ResourceEphemeralStorage: resource.MustParse("16Gi"),
	}
}

// Run runs the node's pods and serves logs and commands until ctx ends or Kill is called.
// When it returns, no container runs.
func (k *Kubelet) Run(ctx context.Context) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: k.client.CoreV1().Events("")})
	k.events = broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: "kubelet", Host: k.config.Node})

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(k.dying, cancel)
	stopServer, err := k.serve()
	if err != nil {
		return err
	}
	stopInformers, err := k.watch(ctx)
	if err == nil {
		<-ctx.Done()
	}
	k.die()
	stopServer()
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	stopInformers()
	k.wg.Wait()
	return err
}

// Kill is the death of the node: its containers are killed in one go, so that none answers for
// another that is dead already; nothing answers, and no status is written. It returns at once;
// Run returns when all is dead.
func (k *Kubelet) Kill() {
	var running []*runtime.Running
	k.mu.Lock()
	for _, p := range k.pods {
		running = append(running, p.running()...)
	}
	k.mu.Unlock()
	k.die()
	for _, r := range running {
		_ = r.Signal(unix.SIGKILL) // who looks after it sees to the rest
	}
}

// watch starts the informers and returns what stops them.
func (k *Kubelet) watch(ctx context.Context) (func(), error) {
	own := informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", k.config.Node).String()
	}))
	all := informers.NewSharedInformerFactory(k.client, 0)
	stop := func() { own.Shutdown(); all.Shutdown() }
	k.services = all.Core().V1().Services().Lister()
	_, err1 := all.Core().V1().Secrets().Informer().AddEventHandler(k.changes("Secret"))
	_, err2 := all.Core().V1().ConfigMaps().Informer().AddEventHandler(k.changes("ConfigMap"))
	if err := errors.Join(err1, err2); err != nil {
		return stop, err
	}
	all.Start(ctx.Done())
	all.WaitForCacheSync(ctx.Done())
	_, err := own.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.update(o.(*v1.Pod)) },
		UpdateFunc: func(_, o any) { k.update(o.(*v1.Pod)) },
		DeleteFunc: k.gone,
	})
	own.Start(ctx.Done())
	return stop, err
}

// changes refreshes the volumes of pods that use the object that changed.
func (k *Kubelet) changes(kind string) cache.ResourceEventHandler {
	tell := func(o any) {
		if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = unknown.Obj
		}
		object, ok := o.(interface{ GetNamespace() string })
		name, named := o.(interface{ GetName() string })
		if !ok || !named {
			return
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, p := range k.pods {
			if p.namespace == object.GetNamespace() && volumes.Uses(p.object(), kind, name.GetName()) {
				p.refreshVolumes()
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: tell, DeleteFunc: tell,
		UpdateFunc: func(_, o any) { tell(o) },
	}
}

// update takes a new version of a pod.
func (k *Kubelet) update(object *v1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.pods[object.UID]; p != nil {
		p.update(object)
		return
	}
	if k.closed || object.Status.Phase == v1.PodFailed || object.Status.Phase == v1.PodSucceeded {
		return
	}
	p := newPod(k, object)
	k.pods[object.UID] = p
	k.wg.Go(func() {
		p.run()
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.pods, object.UID)
	})
}

// gone takes that the object of a pod is not there any more.
func (k *Kubelet) gone(o any) {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	object, ok := o.(*v1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.pods[object.UID]; p != nil {
		p.vanish()
	}
}

// find returns the container of a pod of this node, any of it when none is named.
func (k *Kubelet) find(namespace, name, wanted string) (*container, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.namespace != namespace || p.name != name {
			continue
		}
		for _, c := range p.containers {
			if wanted == "" || c.spec.Name == wanted {
				return c, nil
			}
		}
		return nil, fmt.Errorf("container %q is not in pod %s/%s", wanted, namespace, name)
	}
	return nil, fmt.Errorf("pod %s/%s is not on node %s", namespace, name, k.config.Node)
}
