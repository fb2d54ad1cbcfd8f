package volumes

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevolume "k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/secret"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
)

// payload is the files of a volume, by path.
type payload = map[string]volumeutil.FileProjection

// token is one that a volume holds.
type token struct {
	text    string
	replace time.Time
}

// collect returns what is to be in the volume now.
func (s *Set) collect(ctx context.Context, pod *v1.Pod, spec *v1.Volume) (payload, error) {
	switch {
	case spec.Secret != nil:
		o := spec.Secret
		return s.secret(ctx, pod, o.SecretName, o.Items, o.DefaultMode, o.Optional)
	case spec.ConfigMap != nil:
		o := spec.ConfigMap
		return s.configMap(ctx, pod, o.Name, o.Items, o.DefaultMode, o.Optional)
	case spec.DownwardAPI != nil:
		return s.fields(pod, spec.DownwardAPI.Items, spec.DownwardAPI.DefaultMode)
	}
	all := payload{}
	for _, source := range spec.Projected.Sources {
		part, err := s.projected(ctx, pod, spec, source)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, part)
	}
	return all, nil
}

// projected returns the files of one source of a projected volume.
func (s *Set) projected(ctx context.Context, pod *v1.Pod, spec *v1.Volume, source v1.VolumeProjection) (payload, error) {
	mode := spec.Projected.DefaultMode
	switch {
	case source.Secret != nil:
		return s.secret(ctx, pod, source.Secret.Name, source.Secret.Items, mode, source.Secret.Optional)
	case source.ConfigMap != nil:
		return s.configMap(ctx, pod, source.ConfigMap.Name, source.ConfigMap.Items, mode, source.ConfigMap.Optional)
	case source.DownwardAPI != nil:
		return s.fields(pod, source.DownwardAPI.Items, mode)
	case source.ServiceAccountToken != nil:
		return s.token(ctx, pod, spec, source.ServiceAccountToken)
	}
	return nil, fmt.Errorf("has a source that is not supported here; supported are secret, configMap, downwardAPI and serviceAccountToken")
}

func (s *Set) secret(ctx context.Context, pod *v1.Pod, name string, items []v1.KeyToPath, mode *int32, optional *bool) (payload, error) {
	may := optional != nil && *optional
	object, err := s.config.Client.CoreV1().Secrets(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && may {
		object, err = &v1.Secret{}, nil
	}
	if err != nil {
		return nil, err
	}
	return secret.MakePayload(items, object, mode, may)
}

func (s *Set) configMap(ctx context.Context, pod *v1.Pod, name string, items []v1.KeyToPath, mode *int32, optional *bool) (payload, error) {
	may := optional != nil && *optional
	object, err := s.config.Client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && may {
		object, err = &v1.ConfigMap{}, nil
	}
	if err != nil {
		return nil, err
	}
	return configmap.MakePayload(items, object, mode, may)
}

// fields returns files with fields of the pod.
func (s *Set) fields(pod *v1.Pod, items []v1.DownwardAPIVolumeFile, mode *int32) (payload, error) {
	return downwardapi.CollectData(items, pod, node{allocatable: s.config.Allocatable}, mode)
}

// node is what the kubelet's code asks of its node for fields: nothing else is called.
type node struct {
	kubevolume.VolumeHost
	allocatable v1.ResourceList
}

func (n node) GetNodeAllocatable() (v1.ResourceList, error) { return n.allocatable, nil }

// token returns the file with a token of the pod's service account: a new one when the one
// before has used up four fifths of its life, or a day, as the kubelet has it.
func (s *Set) token(ctx context.Context, pod *v1.Pod, spec *v1.Volume, source *v1.ServiceAccountTokenProjection) (payload, error) {
	key := filepath.Join(spec.Name, source.Path)
	s.mu.Lock()
	held := s.tokens[key]
	s.mu.Unlock()
	now := time.Now()
	if held == nil || !now.Before(held.replace) {
		request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{
			ExpirationSeconds: source.ExpirationSeconds,
			BoundObjectRef:    &authentication.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		}}
		if source.Audience != "" {
			request.Spec.Audiences = []string{source.Audience}
		}
		answer, err := s.config.Client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("cannot get a token of service account %s: %w", pod.Spec.ServiceAccountName, err)
		}
		life := min(answer.Status.ExpirationTimestamp.Sub(now)*4/5, 24*time.Hour)
		held = &token{text: answer.Status.Token, replace: now.Add(life)}
		s.mu.Lock()
		s.tokens[key] = held
		s.mu.Unlock()
	}
	file := volumeutil.FileProjection{Data: []byte(held.text), Mode: *spec.Projected.DefaultMode}
	user := volumeutil.FsUserFrom(pod)
	if user != nil || fsGroup(pod) != nil {
		file.Mode = 0o600 // the group's rights are added when the group is set
		file.FsUser = user
	}
	return payload{source.Path: file}, nil
}
