package problem

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// texts are those of a page, and the key of its last one if there are more.
func texts(l *List, after string, limit int) string {
	all, next := l.All(after, limit)
	var of []string
	for p := range all {
		of = append(of, p.Kind.String()+" "+p.Text)
	}
	return strings.Join(of, ", ") + " | " + next
}

// TestList: what is set again began when it began; what is not set again is over; counts are those of the list.
func TestList(t *testing.T) {
	l := NewList()
	now := time.Unix(1000, 0)
	l.now = func() time.Time { return now }
	note := func(text string) Problem { return Problem{Kind: Note, Route: "ns/a", Text: text} }
	if added := l.Set("route/ns/a"); added != nil {
		t.Errorf("nothing is wrong: %v", added)
	}
	if added := l.Set("route/ns/a", note("one"), note("two")); len(added) != 2 || added[0].Text != "one" {
		t.Errorf("added %v", added)
	}
	now = time.Unix(2000, 0)
	if added := l.Set("route/ns/a", note("two"), Problem{Kind: Rejected, Route: "ns/a", Text: "three"}); len(added) != 1 || added[0].Text != "three" {
		t.Errorf("added %v", added)
	}
	l.Set("file/a", Problem{Kind: File, File: "a", Text: "torn"})
	if got, want := texts(l, "", 0), "file torn, note two, rejected three | "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	all, _ := l.All("", 0)
	if of := slices.Collect(all); of[1].Since != time.Unix(1000, 0).UTC() || of[2].Since != time.Unix(2000, 0).UTC() {
		t.Errorf("%+v", of)
	}
	if got := l.Counts(); got[Note] != 1 || got[Rejected] != 1 || got[File] != 1 || got[Down] != 0 {
		t.Errorf("counts %v", got)
	}
	l.Set("route/ns/a")
	if got := l.Counts(); texts(l, "", 0) != "file torn | " || got[Note]+got[Rejected] != 0 || len(l.owners) != 1 {
		t.Errorf("%s, counts %v", texts(l, "", 0), got)
	}
	var none *List
	if none.Set("x", note("y")) != nil || none.Counts() != [Kinds]int{} || texts(none, "", 0) != " | " {
		t.Error("a list that nobody reads has something")
	}
}

// TestPages: pages follow each other, also where their last one is over meanwhile.
func TestPages(t *testing.T) {
	l := NewList()
	for i := range 3 {
		owner := fmt.Sprint("route/ns/", i)
		l.Set(owner, Problem{Kind: Note, Text: owner + " 0"}, Problem{Kind: Note, Text: owner + " 1"})
	}
	for _, c := range []struct {
		after string
		limit int
		want  string
	}{
		{"", 3, "note route/ns/0 0, note route/ns/0 1, note route/ns/1 0 | route/ns/1#0"},
		{"route/ns/1#0", 3, "note route/ns/1 1, note route/ns/2 0, note route/ns/2 1 | "},
		{"route/ns/1#0", 1, "note route/ns/1 1 | route/ns/1#1"},
		{"route/ns/1", 1, "note route/ns/1 0 | route/ns/1#0"},
		{"route/ns/11#5", 0, "note route/ns/2 0, note route/ns/2 1 | "},
		{"z", 0, " | "},
	} {
		if got := texts(l, c.after, c.limit); got != c.want {
			t.Errorf("after %q, %d: %s, want %s", c.after, c.limit, got, c.want)
		}
	}
}

// TestProblemsOfOneOwnerAreBounded: an object of a tenant fills neither memory nor the page.
func TestProblemsOfOneOwnerAreBounded(t *testing.T) {
	l := NewList()
	var many []Problem
	for i := range 100 {
		many = append(many, Problem{Kind: Note, Text: fmt.Sprint(i, strings.Repeat("ä", mostText))})
	}
	if added := l.Set("route/ns/a", many...); len(added) != mostOfOwner || l.Counts()[Note] != mostOfOwner {
		t.Errorf("%d added, counts %v", len(added), l.Counts())
	}
	all, _ := l.All("", 0)
	of := slices.Collect(all)
	if last := of[len(of)-1].Text; last != "69 more" || len(of[0].Text) > mostText+3 || !strings.HasSuffix(of[0].Text, "ä...") {
		t.Errorf("the last one is %q, the first one has %d bytes", last, len(of[0].Text))
	}
	if added := l.Set("route/ns/a", many...); added != nil {
		t.Errorf("the same again: %d added", len(added))
	}
	l.Set("route/ns/b", many[:mostOfOwner]...)
	all, _ = l.All("route/ns/a#31", 0)
	if of := slices.Collect(all); len(of) != mostOfOwner || strings.HasSuffix(of[31].Text, "more") {
		t.Errorf("%d are as many as fit", len(of))
	}
}
