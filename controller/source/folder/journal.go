package folder

import (
	"go.uber.org/zap"

	"turnout/controller/source"
	"turnout/internal/problem"
)

// Journal logs problems of manifests, and has the list of problems say them as long as they are there. Its methods are Config.Problem and Config.Cleared.
type Journal struct {
	Log      *zap.Logger   // required
	Problems *problem.List // nil = nobody asks
}

// Found logs what a manifest has wrong.
func (j *Journal) Found(p source.Problem) {
	level := zap.ErrorLevel
	if p.Severity == source.Warning {
		level = zap.WarnLevel
	}
	j.Problems.Set("file/"+p.String(), problem.Problem{Kind: problem.File, File: p.File, Object: p.Object, Text: p.Reason})
	if entry := j.Log.Check(level, "manifest"); entry != nil {
		entry.Write(zap.String("file", p.File), zap.Int("document", p.Document), zap.String("object", p.Object), zap.String("reason", p.Reason))
	}
}

// Cleared logs that a manifest no longer has something wrong.
func (j *Journal) Cleared(p source.Problem) {
	j.Problems.Set("file/" + p.String())
	j.Log.Info("manifest repaired", zap.String("file", p.File), zap.Int("document", p.Document), zap.String("object", p.Object), zap.String("was", p.Reason))
}
