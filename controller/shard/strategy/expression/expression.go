// Package expression is strategy CEL: an expression of the Common Expression Language gives each router a score for a route, and the highest
// wins. docs/sharding.md has the language for administrators.
package expression

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"

	"turnout/controller/shard"
)

// Bounds of expressions.
const (
	MaxLength   = 4096   // characters
	CostLimit   = 10_000 // of one evaluation, in units of CEL: about one for each step. An expression that costs more fails.
	Concurrency = 4      // routes that are scored at once
)

// scorer is a compiled expression.
type scorer struct {
	program cel.Program
	adapter types.Adapter
}

// New compiles an expression of route and router: a number, of which the highest wins, or true for routers that may have the route. Errors
// name the place in the text. The strategy keeps nothing between calls and may be used by many goroutines.
func New(expression string) (shard.Slow, error) {
	options := []cel.EnvOption{ext.Math(), cel.ParserExpressionSizeLimit(MaxLength)}
	var names []string
	for _, v := range variables() {
		options = append(options, cel.Variable(v.name, v.kind))
		names = append(names, v.name)
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("cannot make the environment of expressions: %w", err)
	}
	ast, issues := env.CompileSource(common.NewStringSource(expression, "spec.cel.expression"))
	if issues.Err() != nil {
		return nil, fmt.Errorf("cannot compile the expression: %w\nThere are %s", issues.Err(), strings.Join(names, ", "))
	}
	switch t := ast.OutputType(); {
	case t.IsExactType(cel.BoolType), t.IsExactType(cel.IntType), t.IsExactType(cel.UintType), t.IsExactType(cel.DoubleType):
	default:
		return nil, fmt.Errorf("cannot use the expression: its result is of type %s, not int, uint, double or bool", t)
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(CostLimit))
	if err != nil {
		return nil, fmt.Errorf("cannot compile the expression: %w", err)
	}
	return &scorer{program: program, adapter: env.CELTypeAdapter()}, nil
}

// Concurrency is shard.Slow's.
func (s *scorer) Concurrency() int { return Concurrency }

// Schedule is shard.Strategy's. Routers for which the expression fails or is false are passed over; among the best, the one with the least
// routes is taken.
func (s *scorer) Schedule(r *shard.Route, routers []*shard.Router) (*shard.Router, error) {
	of := &subjects{adapter: s.adapter, route: r}
	var best *shard.Router
	var most float64
	var failure error
	for _, to := range routers {
		of.router = to
		score, err := s.score(of)
		switch {
		case err != nil:
			if failure == nil && !errors.Is(err, errNo) {
				failure = fmt.Errorf("for router %s: %w", to.Name, err)
			}
		case best == nil, score > most, score == most && to.Bound < best.Bound:
			best, most = to, score
		}
	}
	switch {
	case best != nil:
		return best, nil
	case failure != nil:
		return nil, fmt.Errorf("the expression fails or is false for all %d routers that may have the route, %w: correct spec.cel.expression", len(routers), failure)
	}
	return nil, fmt.Errorf("the expression is false for all %d routers that may have the route: change labels, or spec.cel.expression", len(routers))
}

// errNo is that an expression is false.
var errNo = errors.New("false")

func (s *scorer) score(of *subjects) (float64, error) {
	out, _, err := s.program.Eval(of)
	if err != nil {
		return 0, err //nolint:wrapcheck // Schedule says whose it is
	}
	switch v := out.(type) {
	case types.Bool:
		if !v {
			return 0, errNo
		}
		return 1, nil
	case types.Int:
		return float64(v), nil
	case types.Uint:
		return float64(v), nil
	case types.Double:
		if math.IsNaN(float64(v)) {
			return 0, errors.New("the score is not a number")
		}
		return float64(v), nil
	}
	return 0, fmt.Errorf("the score is of type %s", out.Type().TypeName())
}
