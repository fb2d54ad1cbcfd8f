package report

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// The charts of cost, by what it is drawn against.
const (
	ChartConnections = "connections"
	ChartRoutes      = "routes"
	ChartBody        = "body"
)

// baseCase is the case of the plain request, which begins two charts: with one route, and an answer of so many bytes.
const (
	baseCase = "h1-64"
	baseBody = 128
)

// proxies are the lines and bars, with their names and colours.
var proxies = []struct {
	side, name string
	color      color.Color
}{
	{Turnout, "Turnout", color.RGBA{R: 0x2b, G: 0x6c, B: 0xb0, A: 0xff}},
	{Least, "HAProxy, least", color.RGBA{R: 0xc5, G: 0x30, B: 0x30, A: 0xff}},
	{Template, "HAProxy, template", color.RGBA{R: 0xed, G: 0x89, B: 0x36, A: 0xff}},
	{Nginx, "nginx", color.RGBA{R: 0x38, G: 0xa1, B: 0x69, A: 0xff}},
}

var grey = color.RGBA{R: 0x99, G: 0x99, B: 0x99, A: 0xff}

const chartWidth = 24 * vg.Centimeter

// draw writes a plot as SVG.
func draw(w io.Writer, p *plot.Plot, height vg.Length) error {
	c, err := p.WriterTo(chartWidth, height, "svg")
	if err == nil {
		_, err = c.WriteTo(w)
	}
	if err != nil {
		return fmt.Errorf("cannot draw %s: %w", p.Title.Text, err)
	}
	return nil
}

// mainCases are the bars of the README, as far as they were measured.
var mainCases = []string{
	"h1-64", "h1-512", "h1-close", "get-64k", "get-1m", "put-64k", "routes-10k", "tls-64", "handshake-ecdsa", "handshake-resumed", "h2-16x16",
}

// Bars draws the processor time of Turnout as a share of each peer's, case by case.
func (r *Results) Bars(w io.Writer) error {
	var cases []*Case
	for i := range slices.Backward(r.Cases) { // a chart begins at the bottom
		if slices.Contains(mainCases, r.Cases[i].Name) {
			cases = append(cases, &r.Cases[i])
		}
	}
	if len(cases) == 0 {
		return fmt.Errorf("cannot draw bars: there is none of the cases %q", mainCases)
	}
	p := plot.New()
	p.Title.Text = "Processor time of Turnout, the other proxy = 1 (less is better)"
	p.X.Min, p.X.Max = 0, 1.3
	p.Y.Min, p.Y.Max = -0.6, float64(len(cases))+0.6 // room for the legend
	p.Legend.Top = true
	const width = 6
	for i, peer := range proxies[1:] {
		var values plotter.Values
		for _, c := range cases {
			values = append(values, min(c.ratio(peer.side), p.X.Max))
		}
		bars, err := plotter.NewBarChart(values, vg.Points(width))
		if err != nil {
			return fmt.Errorf("cannot draw bars: %w", err)
		}
		bars.Horizontal, bars.Color, bars.LineStyle.Width, bars.Offset = true, peer.color, 0, vg.Points(float64(1-i)*width)
		p.Add(bars)
		p.Legend.Add("of "+peer.name, bars)
	}
	one, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.6}, {X: 1, Y: float64(len(cases)) - 0.4}})
	if err != nil {
		return fmt.Errorf("cannot draw bars: %w", err)
	}
	one.Color, one.Dashes = grey, []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(one)
	names := make([]string, len(cases))
	for i, c := range cases {
		names[i] = c.About + strings.Repeat(" ", 12) // room for fonts that are wider than the one that is measured
	}
	p.NominalY(names...)
	return draw(w, p, vg.Length(len(cases))*vg.Centimeter+2*vg.Centimeter)
}

// axis says what a chart of cost is drawn against.
type axis struct {
	title, label string
	logY         bool
	base         float64 // where baseCase stands; 0 = it is a point of the chart itself
}

var axes = map[string]axis{
	ChartConnections: {"Cost of a request against connections", "connections that are kept alive", false, 0},
	ChartRoutes:      {"Cost of a request against routes, each URL new", "routes", true, 1},
	ChartBody:        {"Cost of a request against the size of its answer", "bytes", true, baseBody},
}

// points are what a proxy cost along a chart.
func (r *Results) points(chart, side string) (points plotter.XYs) {
	for i := range r.Cases {
		c := &r.Cases[i]
		at := c.At
		if c.Chart != chart {
			if at = axes[chart].base; c.Name != baseCase || at == 0 {
				continue
			}
		}
		if s := c.Side(side); s != nil && s.Micros > 0 {
			points = append(points, plotter.XY{X: at, Y: s.Micros})
		}
	}
	return points
}

// Lines draws what a request costs each proxy along a chart.
func (r *Results) Lines(w io.Writer, chart string) error {
	a := axes[chart]
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = a.title, a.label, "µs of processor time"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	if a.logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	drawn := 0
	for _, proxy := range proxies {
		points := r.points(chart, proxy.side)
		if len(points) < 2 {
			continue
		}
		drawn++
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("cannot draw %s: %w", chart, err)
		}
		line.Color, line.Width, marks.Color = proxy.color, vg.Points(1.5), proxy.color
		p.Add(line, marks)
		p.Legend.Add(proxy.name, line)
	}
	if drawn == 0 {
		return fmt.Errorf("cannot draw %s: fewer than two of its cases were measured", chart)
	}
	if !a.logY {
		p.Y.Min = 0
	}
	p.Y.Max *= 1.25 // room for the legend
	return draw(w, p, 10*vg.Centimeter)
}
