package balancer

// watch is one group that wants a member checked.
type watch struct {
	group *group
	at    int32 // place of the member in its roster
}

// watches is who wants a check. Most checks are wanted by one group. Registry.mu guards it.
type watches struct {
	first watch    // without a group = nobody wants it
	more  *[]watch // nil = nobody else does
}

// all calls yield with each of them.
func (ws *watches) all(yield func(watch) bool) {
	if ws.first.group == nil || !yield(ws.first) || ws.more == nil {
		return
	}
	for _, w := range *ws.more {
		if !yield(w) {
			return
		}
	}
}

// add adds one and returns where it is.
func (ws *watches) add(w watch) int32 {
	if ws.first.group == nil {
		ws.first = w
		return 0
	}
	if ws.more == nil {
		ws.more = new([]watch)
	}
	*ws.more = append(*ws.more, w)
	return int32(len(*ws.more))
}

// remove takes out the one at a place, which the last one takes: its group is notified.
func (ws *watches) remove(at int32) {
	if ws.more == nil {
		ws.first = watch{}
		return
	}
	more := *ws.more
	end := len(more) - 1
	last := more[end]
	if at == 0 {
		ws.first = last
	} else {
		more[at-1] = last
	}
	last.group.checks[last.at].watch = at
	more[end] = watch{}
	if *ws.more = more[:end]; end == 0 {
		ws.more = nil
	}
}
