package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestLiveByHolder: a stack counts for the first holder that is on it, as often as the sample says that there are others like it.
func TestLiveByHolder(t *testing.T) {
	const profile = `heap profile: 3: 1100 [9: 9000] @ heap/2048
1: 100000 [1: 100000] @ 0x1 0x2
#	0x1	turnout/balancer.newPool+0x1		/balancer/pool.go:1
#	0x2	turnout/controller.(*state).apply+0x2	/controller/state.go:2

2: 100000 [2: 100000] @ 0x3
#	0x3	runtime.mallocgc+0x1	/runtime/malloc.go:1
#	0x4	company.example/other.Make+0x1	/other.go:1

0: 0 [5: 5000] @ 0x5
#	0x5	turnout/balancer.newPool+0x1	/balancer/pool.go:1

# runtime.MemStats
# Alloc = 1
`
	total, rows := liveByHolder(strings.NewReader(profile))
	if len(rows) != 2 || total < 200_000 || total > 200_001 || rows[0].bytes+rows[1].bytes != total {
		t.Fatalf("%v in %v", total, rows)
	}
	for _, row := range rows {
		if row.holder != "pools" && row.holder != "company.example/other.Make" {
			t.Errorf("held by %q", row.holder)
		}
	}
	// Of 10 bytes each, one in about a hundred is in a sample every 1,024 bytes.
	if total, _ := liveByHolder(strings.NewReader("heap profile: 1: 10 [1: 10] @ heap/2048\n1: 10 [1: 10] @ 0x1\n#\t0x1\tf+0x1\t/f.go:1\n")); total < 1024 || total > 1040 {
		t.Errorf("a sample of 10 bytes stands for %v", total)
	}
}

// TestRoutesAPI: a status that is written is there from then on, with a version of its own, and others' answers are JSON.
func TestRoutesAPI(t *testing.T) {
	objects := manyRoutes(3)
	a := newRoutesAPI(objects)
	ask := func(method, path, body string) (map[string]any, int) {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
		var answer map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
		}
		return answer, w.Code
	}
	for plural := range objects {
		if list, _ := ask(http.MethodGet, "/apis/group/v1/"+plural, ""); len(list["items"].([]any)) != 3 {
			t.Errorf("%s: %v", plural, list)
		}
	}
	if _, code := ask(http.MethodGet, "/api/v1/pods", ""); code != http.StatusNotFound {
		t.Errorf("pods: %d", code)
	}
	const route = "/apis/route.openshift.io/v1/namespaces/many/routes/r1/status"
	got, _ := ask(http.MethodPatch, route, `{"metadata":{"resourceVersion":"1"},"status":{"ingress":[{"host":"h"}]}}`)
	if status := got["status"].(map[string]any); len(status["ingress"].([]any)) != 1 || a.statuses() != 1 {
		t.Errorf("%v, %d written", got, a.statuses())
	}
	if strings.Contains(objects["routes"][1], "ingress") || !strings.Contains(a.objects["routes"][1], `"ingress"`) || !strings.Contains(a.news[0], `"MODIFIED"`) {
		t.Errorf("given: %s, there: %s, told: %s", objects["routes"][1], a.objects["routes"][1], a.news[0])
	}
}
