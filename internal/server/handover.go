package server

import "turnout/internal/handover"

// Roles of listening sockets, for SocketName.
const (
	HTTPSocket  = "http"
	HTTPSSocket = "https"
)

// portSocket is the role of the socket of a port with a name, of Config.Ports or SetPorts.
func portSocket(name string) string { return "port " + name }

// SocketName is how a listening socket is called that goes from one process to the next: that goes on with it only if it was given
// the same address for the role.
func SocketName(role, addr string) string { return role + " " + addr }

// Sockets returns copies of the listening sockets, which are the caller's, also with an error.
func (s *Server) Sockets() ([]handover.Listener, error) {
	var all []handover.Listener
	for _, port := range s.openPorts() {
		descriptors := s.group.Descriptors
		if port.kind == PortUDP {
			descriptors = s.group.DatagramDescriptors
		}
		fds, err := descriptors(port.bound)
		all = append(all, handover.Listener{Name: SocketName(port.role, port.addr), Sockets: fds})
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// HandOver stops accepting: another process does. Run goes on until its ctx is done.
func (s *Server) HandOver() {
	s.handedOver.Store(true)
	s.stopListening()
}

// stopListening closes all ports for good.
func (s *Server) stopListening() {
	s.moving.Lock()
	s.stopped = true
	s.moving.Unlock()
	s.group.StopListening()
	s.group.StopReceiving()
}
