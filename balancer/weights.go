package balancer

// MaxWeight is the greatest weight of a service and of a server.
const MaxWeight = 256

// ServiceWeight is one service of a route.
type ServiceWeight struct {
	Weight    int // as configured; below 0 counts as 0, above MaxWeight as MaxWeight
	Endpoints int // endpoints that match the port of the route
}

// Weights returns the weight of each server of each service, 0..MaxWeight, in the
// order given. Requests are shared among services by weight, whatever their number
// of endpoints; a single active service gets weight 1. A service without endpoints
// has no servers and gets 0.
//
// The arithmetic is in float32, as in the HAProxy router: results must not
// differ by one.
func Weights(services []ServiceWeight) []int {
	out := make([]int, len(services))
	active, last := 0, 0
	var largest float32
	for i, s := range services {
		if share := s.share(); share > 0 {
			active, last = active+1, i
			largest = max(largest, share)
		}
	}
	switch active {
	case 0:
		return out
	case 1:
		out[last] = 1
		return out
	}
	scale := float32(MaxWeight) / largest
	for i, s := range services {
		if share := s.share(); share > 0 {
			out[i] = max(1, int(share*scale))
		}
	}
	return out
}

// share returns the weight of one endpoint before scaling.
func (s ServiceWeight) share() float32 {
	if s.Endpoints <= 0 {
		return 0
	}
	return float32(min(max(s.Weight, 0), MaxWeight)) / float32(s.Endpoints)
}
