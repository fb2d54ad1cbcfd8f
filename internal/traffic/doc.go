// Package traffic has the counters of what goes through a port, a route or a server of a route. They are changed on the way of each
// request, without a lock or an allocation, and read by what makes metrics of them. Their zero values are ready; any goroutine may
// use them.
package traffic
