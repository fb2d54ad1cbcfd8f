package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"go.uber.org/zap"

	"turnout/internal/handover"
	"turnout/internal/server"
)

// adminSocket is the role of the admin port's listening socket, for server.SocketName.
const adminSocket = "admin"

// meetPredecessor asks for the sockets of the process that runs already, if there is one.
func (r *router) meetPredecessor() (err error) {
	if r.o.handoverSocket == "" {
		return nil
	}
	r.predecessor, err = handover.Connect(r.o.handoverSocket)
	return err
}

// inherit is what the request path inherits from, nil without a predecessor.
func (r *router) inherit() func(name string) []int {
	if r.predecessor == nil {
		return nil
	}
	return r.predecessor.TakeSockets
}

// adminListener is the admin listener of the predecessor, nil without one.
func (r *router) adminListener() (net.Listener, error) {
	if r.predecessor == nil {
		return nil, nil
	}
	ln, err := r.predecessor.TakeListener(server.SocketName(adminSocket, r.o.adminAddr))
	if err != nil {
		return nil, fmt.Errorf("cannot inherit the admin port: %w", err)
	}
	return ln, nil
}

// succeed begins to serve in the place of the predecessor, which stops accepting. It gives up waiting for it when ctx
// ends, without an error.
func (r *router) succeed(ctx context.Context) error {
	if r.late {
		if err := r.data.Listen(); err != nil {
			return err
		}
	}
	if r.admin == nil {
		if err := r.startAdmin(); err != nil {
			return err
		}
	}
	if r.late {
		r.logListening()
	}
	if r.predecessor != nil {
		err := r.predecessor.Ready(ctx)
		r.predecessor = nil
		switch {
		case errors.Is(err, context.Canceled): // nobody needs a successor any more
			return nil
		case err != nil:
			return err
		}
		r.log.Info("took over from the process before this one", zap.String("socket", r.o.handoverSocket))
	}
	return r.offer()
}

// offer makes this process ready for a successor of its own.
func (r *router) offer() (err error) {
	if r.o.handoverSocket == "" {
		return nil
	}
	r.handover, err = handover.Serve(handover.Config{
		Path: r.o.handoverSocket,
		Listeners: func() ([]handover.Listener, error) {
			all, err := r.data.Sockets()
			if err != nil {
				return all, err
			}
			fd, err := r.admin.Descriptor()
			if err != nil {
				return all, err
			}
			return append(all, handover.Listener{Name: server.SocketName(adminSocket, r.o.adminAddr), Sockets: []int{fd}}), nil
		},
		Release: func() {
			r.data.HandOver()
			r.admin.StopListening()
		},
		Log: func(err error) { r.log.Warn(err.Error()) },
	})
	return err
}

// released is closed when a successor serves; nil, which never is, while none can come.
func (r *router) released() <-chan struct{} {
	if r.handover == nil {
		return nil
	}
	return r.handover.Released()
}

// closeHandover ends the conversations with predecessor and successor.
func (r *router) closeHandover() {
	if r.predecessor != nil {
		r.predecessor.Close()
	}
	if r.handover != nil {
		r.handover.Close()
	}
}
