package h2frame

// table is the dynamic table of a Decoder (RFC 7541 section 2.3.2). The zero value is empty and has no memory.
type table struct {
	b       []byte  // names and values, the oldest entry first, after those of entries that were evicted
	entries []entry // the oldest first, after evicted ones
	first   int     // of entries
	size    int     // as RFC 7541 section 4.1 counts
}

// entry is a field in table.b.
type entry struct{ at, name, value int32 }

// entryCost is what an entry costs besides its strings (RFC 7541 section 4.1).
const entryCost = 32

func (e entry) size() int { return int(e.name) + int(e.value) + entryCost }

// at is entry i, 0 being the newest.
func (t *table) at(i uint64) (name, value []byte, ok bool) {
	if i >= uint64(len(t.entries)-t.first) {
		return nil, nil, false
	}
	e := t.entries[len(t.entries)-1-int(i)]
	p := t.b[e.at : e.at+e.name+e.value]
	return p[:e.name:e.name], p[e.name:], true
}

// evict removes the oldest entries until at most so many bytes are left.
func (t *table) evict(most int) {
	for t.size > most {
		t.size -= t.entries[t.first].size()
		t.first++
	}
	if t.first == len(t.entries) {
		t.b, t.entries, t.first = t.b[:0], t.entries[:0], 0
	}
}

// addField evicts entries until one more fits into most bytes, and appends it; one that does not fit empties the table (RFC 7541 section 4.4). The
// strings are not in the table.
func (t *table) addField(name, value []byte, most int) {
	e := entry{name: int32(len(name)), value: int32(len(value))}
	if e.size() > most {
		t.evict(0)
		return
	}
	t.evict(most - e.size())
	if dead := t.first; dead > 0 && len(t.entries) == cap(t.entries) {
		t.entries = t.entries[:copy(t.entries, t.entries[dead:])]
		t.first = 0
	}
	if need := len(name) + len(value); len(t.b)+need > cap(t.b) {
		t.compact(need)
	}
	e.at = int32(len(t.b))
	t.b = append(append(t.b, name...), value...)
	t.entries = append(t.entries, e)
	t.size += e.size()
}

// compact finds space for need bytes: where those of evicted entries are, or in more memory.
func (t *table) compact(need int) {
	live := t.entries[t.first:]
	from := len(t.b)
	if len(live) > 0 {
		from = int(live[0].at)
	}
	b := t.b[:0]
	if rest := len(t.b) - from; rest+need > cap(b) || from < rest {
		b = make([]byte, 0, 2*(rest+need))
	}
	t.b = append(b, t.b[from:]...)
	for i := range live {
		live[i].at -= int32(from)
	}
}

// staticField is an entry of the static table (RFC 7541 appendix A).
type staticField struct{ name, value string }

// static is the static table; its first entry has index 1.
var static = [...]staticField{
	{":authority", ""}, {":method", "GET"}, {":method", "POST"}, {":path", "/"}, {":path", "/index.html"}, {":scheme", "http"},
	{":scheme", "https"}, {":status", "200"}, {":status", "204"}, {":status", "206"}, {":status", "304"}, {":status", "400"},
	{":status", "404"}, {":status", "500"}, {"accept-charset", ""}, {"accept-encoding", "gzip, deflate"}, {"accept-language", ""},
	{"accept-ranges", ""}, {"accept", ""}, {"access-control-allow-origin", ""}, {"age", ""}, {"allow", ""}, {"authorization", ""},
	{"cache-control", ""}, {"content-disposition", ""}, {"content-encoding", ""}, {"content-language", ""}, {"content-length", ""},
	{"content-location", ""}, {"content-range", ""}, {"content-type", ""}, {"cookie", ""}, {"date", ""}, {"etag", ""}, {"expect", ""},
	{"expires", ""}, {"from", ""}, {"host", ""}, {"if-match", ""}, {"if-modified-since", ""}, {"if-none-match", ""}, {"if-range", ""},
	{"if-unmodified-since", ""}, {"last-modified", ""}, {"link", ""}, {"location", ""}, {"max-forwards", ""}, {"proxy-authenticate", ""},
	{"proxy-authorization", ""}, {"range", ""}, {"referer", ""}, {"refresh", ""}, {"retry-after", ""}, {"server", ""}, {"set-cookie", ""},
	{"strict-transport-security", ""}, {"transfer-encoding", ""}, {"user-agent", ""}, {"vary", ""}, {"via", ""}, {"www-authenticate", ""},
}
