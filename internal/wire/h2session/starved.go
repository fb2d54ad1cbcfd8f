package h2session

import "turnout/internal/wire/h2frame"

// EndStarved resets the streams whose output waits for a window. It is for peers that send nothing more: they will not open one,
// and in most cases are gone altogether, which shows only in an answer to something that is sent.
func (s *Session) EndStarved() {
	for i := len(s.open) - 1; i >= 0; i-- {
		if i >= len(s.open) { // the end of one stream may have ended others
			continue
		}
		if st := s.open[i]; st.out.len() > 0 && (st.window <= 0 || s.window <= 0) {
			st.Reset(h2frame.Cancel)
		}
	}
}
