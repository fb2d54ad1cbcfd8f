package server

import (
	"os"

	"turnout/proxy"
)

// UniqueID makes the id that requests get, nil when it is not configured in full. log gets what of it has no effect.
func UniqueID(format, header string, log Logger) (*proxy.UniqueID, error) {
	if format == "" || header == "" {
		if format+header != "" {
			log(Warning, "unique id: format and header name are needed both; requests get none")
		}
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	id, warnings, err := proxy.NewUniqueID(proxy.UniqueIDConfig{Format: format, Header: header, PID: os.Getpid(), Host: host})
	for _, w := range warnings {
		log(Warning, w)
	}
	return id, err
}
