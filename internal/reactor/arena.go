package reactor

type arena struct{}
