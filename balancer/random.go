package balancer

import "slices"

// random draws two servers by weight and returns the index of the less loaded one,
// of two equal ones the first. bits are 64 random bits of the caller. skip is not
// drawn.
//
// With equal weights the two draws are different servers. With different weights
// they are independent: forcing a second server would give the light one requests
// beyond its weight.
func (s *set) random(bits uint64, skip int) int {
	high, low := bits>>32, bits&0xFFFFFFFF
	if s.uniform {
		return s.randomUniform(high, low, skip)
	}
	i, j := s.draw(high, skip), s.draw(low, skip)
	return s.lighter(i, j)
}

func (s *set) randomUniform(high, low uint64, skip int) int {
	n := uint64(len(s.active))
	if skip >= 0 {
		n--
	}
	i := high * n >> 32
	if n == 1 {
		return without(i, skip)
	}
	j := low * (n - 1) >> 32
	if j >= i {
		j++
	}
	return s.lighter(without(i, skip), without(j, skip))
}

// without maps an index among the servers without skip to one among all.
func without(i uint64, skip int) int {
	if skip >= 0 && int(i) >= skip {
		return int(i) + 1
	}
	return int(i)
}

// lighter returns j if that server is less loaded than i, else i.
func (s *set) lighter(i, j int) int {
	if i != j && s.load(j).less(s.load(i)) {
		return j
	}
	return i
}

// draw returns a server by weight from 32 random bits. skip is not drawn. The weights are not uniform.
func (s *set) draw(bits uint64, skip int) int {
	total, hole := uint64(s.total), uint64(0)
	if skip >= 0 {
		hole = uint64(s.active[skip].weight)
	}
	at := uint32(bits * (total - hole) >> 32)
	if skip >= 0 && at >= s.sums[skip]-uint32(hole) {
		at += uint32(hole)
	}
	return s.at(at)
}

// at returns the server that owns unit number unit of the total weight.
func (s *set) at(unit uint32) int {
	if s.uniform {
		return int(unit / s.heaviest)
	}
	i, found := slices.BinarySearch(s.sums, unit)
	if found {
		i++
	}
	return i
}
