// Package proxy is the request pipeline.
package proxy
