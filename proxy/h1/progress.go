package h1

// Progress implements proxy.Half.
func (sc *serverConn) Progress() (taken uint64, left int) { return sc.c.BytesWritten(), sc.c.Pending() }

// Progress implements proxy.Half.
func (cc *clientConn) Progress() (taken uint64, left int) { return cc.c.BytesWritten(), cc.c.Pending() }
