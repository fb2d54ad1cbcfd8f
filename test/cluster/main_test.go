package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"turnout/test/cluster/sandbox"
)

// shared is the cluster of all tests. A test has namespaces of its own.
var shared *Cluster

// startTime is how long the cluster took to start.
var startTime time.Duration

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "echo" {
		fmt.Fprintln(os.Stderr, echo())
		os.Exit(1)
	}
	os.Exit(sandbox.Tests(m, sandbox.Config{Dir: filepath.Join("bin", "run")}, setUp, func() error { return shared.Stop() }))
}

func setUp(dir string) error {
	logs := filepath.Join("bin", "logs")
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return err
	}
	begin := time.Now()
	var err error
	shared, err = Start(context.Background(), Config{
		Dir: dir, Logs: logs, Programs: "bin",
		Nodes: []Node{{Name: "one", Labels: map[string]string{"disk": "fast"}}, {Name: "two"}},
	})
	startTime = time.Since(begin)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return shared.Images.AddProgram("echo", program, &ocispec.ImageConfig{Entrypoint: []string{"/" + filepath.Base(program), "echo"}})
}

// The cluster is there fast enough for a test of one thing.
func TestStartTime(t *testing.T) {
	t.Logf("started in %v", startTime.Round(time.Millisecond))
	if most := 20 * time.Second; startTime > most {
		t.Errorf("started in %v, want at most %v", startTime, most)
	}
}
