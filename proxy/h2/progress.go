package h2

// Progress implements proxy.Progress.
func (st *serverStream) Progress() (taken uint64, left int) { return st.Stream.Progress() }

// Progress implements proxy.Progress.
func (st *clientStream) Progress() (taken uint64, left int) { return st.Stream.Progress() }
