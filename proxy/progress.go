package proxy

// noteProgress remembers how far a half is that has just become congested.
func (ex *Exchange) noteProgress(h Half) { ex.taken, _ = h.Progress() }

// progressed reports that the half that is waited for has bytes to take and took some
// since it was looked at last: it has its whole time again.
func (ex *Exchange) progressed(waitClient bool) bool {
	var h Half = ex.up
	if waitClient {
		if !ex.downFull {
			return false
		}
		h = ex.down
	}
	taken, left := h.Progress()
	if left == 0 || taken == ex.taken {
		return false
	}
	ex.taken = taken
	return true
}
