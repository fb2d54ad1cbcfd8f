//go:build !race

package admin

const raced = false
