package logging

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"turnout/internal/problem"
)

// Level is the level of the log while the process runs. A file can say another one than the option: one word, read at the start
// and whenever Reread is called. Any goroutine may use it.
type Level struct {
	file  string // "" = none
	level zap.AtomicLevel
	say   *zap.Logger // to the same log, whatever the level

	mu       sync.Mutex
	failed   string        // why the file cannot be used, "" = it can
	problems *problem.List // nil = nobody asks
}

// NewLevel returns a log that writes to w and its level, which is that of the file if there is one; no file = "".
func NewLevel(w io.Writer, level zapcore.Level, file string, format Format) (*zap.Logger, *Level) {
	c := &Level{file: file, level: zap.NewAtomicLevelAt(level), say: New(w, zapcore.DebugLevel, format)}
	if c.file != "" {
		if err := c.read(); err != nil {
			c.say.Warn("the log level stays", zap.Stringer("at", c.level), zap.Error(err))
		}
	}
	return New(w, c.level, format), c
}

// ParseLevel reads the word for a level. The error says which are allowed.
func ParseLevel(s string) (zapcore.Level, error) {
	switch s {
	case "debug", "info", "warn", "error":
		return zapcore.ParseLevel(s)
	}
	return 0, errors.New("allowed: debug, info, warn, error")
}

// Reread reads the file, because of a SIGHUP, and logs what comes of it.
func (c *Level) Reread() {
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

// Word is the level as it is now.
func (c *Level) Word() string { return c.level.String() }

// SetWord sets the level, because somebody asked for it by the admin port, and logs that. The error says which words are allowed.
func (c *Level) SetWord(word string) error {
	level, err := ParseLevel(word)
	if err != nil {
		return err
	}
	before := c.level.Level()
	c.level.SetLevel(level)
	c.say.Info("the log level was set by the admin port", zap.Stringer("from", before), zap.Stringer("to", level))
	return nil
}

// Report has a list say so while the file cannot be used.
func (c *Level) Report(problems *problem.List) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems = problems
	c.tell()
}

// tell tells the list. c.mu is held.
func (c *Level) tell() {
	owner := "file/" + c.file
	if c.failed == "" {
		c.problems.Set(owner)
		return
	}
	c.problems.Set(owner, problem.Problem{Kind: problem.File, File: c.file, Text: "the log level stays: " + c.failed})
}

// mostLevel is more than a file with a level has, in bytes.
const mostLevel = 64

// read takes the level of the file.
func (c *Level) read() error {
	err := c.readFile()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed = ""; err != nil {
		c.failed = err.Error()
	}
	c.tell()
	return err
}

func (c *Level) readFile() error {
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
	level, err := ParseLevel(word)
	if err != nil {
		return fmt.Errorf("cannot use %q in %s as a log level; %w", word, c.file, err)
	}
	c.level.SetLevel(level)
	return nil
}
