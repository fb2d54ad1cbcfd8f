package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// levelControl is the level of the log while the process runs. A file can say another one than the option: one word, read at the start
// and at each SIGHUP.
type levelControl struct {
	file  string // "" = none
	level zap.AtomicLevel
	say   *zap.Logger // to the same log, whatever the level
}

// newLog returns the log that o asks for, which writes to w, and its level.
func newLog(w io.Writer, o *options) (*zap.Logger, *levelControl) {
	c := &levelControl{file: o.logLevelFile, level: zap.NewAtomicLevelAt(o.logLevel), say: newLogger(w, zapcore.DebugLevel)}
	if c.file != "" {
		if err := c.read(); err != nil {
			c.say.Warn("the log level stays", zap.Stringer("at", c.level), zap.Error(err))
		}
	}
	return newLogger(w, c.level), c
}

// again reads the file, because of a SIGHUP, and says what comes of it.
func (c *levelControl) again() {
	before := c.level.Level()
	err := errors.New("--log-level-file is not given")
	if c.file != "" {
		err = c.read()
	}
	if err != nil {
		c.say.Warn("SIGHUP: the log level stays", zap.Stringer("at", before), zap.Error(err))
		return
	}
	c.say.Info("SIGHUP: the log level was read again", zap.Stringer("from", before), zap.Stringer("to", c.level))
}

// mostLevel is more than a file with a level has, in bytes.
const mostLevel = 64

// read takes the level of the file.
func (c *levelControl) read() error {
	info, err := os.Stat(c.file)
	if err != nil {
		return fmt.Errorf("cannot read the log level: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("cannot read the log level: %s is not a regular file", c.file)
	}
	f, err := os.Open(c.file)
	if err != nil {
		return fmt.Errorf("cannot read the log level: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, mostLevel))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot read the log level: %w", err)
	}
	word := strings.TrimSpace(string(text))
	level, err := parseLevel(word)
	if err != nil {
		return fmt.Errorf("cannot use %q in %s as a log level; %w", word, c.file, err)
	}
	c.level.SetLevel(level)
	return nil
}
