package admin

import (
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
)

// Listing gives values in order of their keys, NAMESPACE/NAME: those that follow the key after, "" = from the first on, at most limit, 0 = all.
// next is the key of the last one when there are more. Values are made while they are asked for. Any goroutine may call it.
type Listing func(after string, limit int) (values iter.Seq[any], next string)

// mostPerPage is the largest limit that is accepted.
const mostPerPage = 1 << 30

// page reads which part of a listing a request asks for, by the parameters that lists of the Kubernetes API have.
func page(query url.Values) (after string, limit int, err error) {
	if text := query.Get("limit"); text != "" {
		limit, err = strconv.Atoi(text)
		if err != nil || limit < 0 || limit > mostPerPage {
			return "", 0, errors.New("limit is not a number from 0 on")
		}
	}
	return query.Get("continue"), limit, nil
}

// list answers with a listing, as one array, value by value: never is the whole of it in memory. A further page is named by a Link
// (RFC 8288).
func list(w http.ResponseWriter, r *http.Request, of Listing) {
	after, limit, err := page(r.URL.Query())
	if err != nil {
		say(w, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	values, next := of(after, limit)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if next != "" {
		query := url.Values{"limit": {strconv.Itoa(limit)}, "continue": {next}}
		h.Set("Link", "<"+r.URL.Path+"?"+query.Encode()+`>; rel="next"`)
	}
	if r.Method == http.MethodHead {
		return
	}
	between := "[\n "
	for value := range values {
		text, err := json.MarshalIndent(value, " ", " ")
		if err != nil {
			panic(http.ErrAbortHandler) // the status has been sent; a torn answer shows that it is not whole
		}
		if _, err := w.Write(append([]byte(between), text...)); err != nil {
			return
		}
		between = ",\n "
		runtime.Gosched() // probes are answered meanwhile
	}
	end := "\n]\n"
	if between[0] == '[' {
		end = "[]\n"
	}
	_, _ = w.Write([]byte(end)) // the client has gone, or sees it
}

// answerJSON writes a value for people and programs.
func answerJSON(w http.ResponseWriter, value any) {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		say(w, http.StatusInternalServerError, "cannot encode the answer\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // as above
}

// ListingOf is a Listing of values of one type.
func ListingOf[T any](of func(after string, limit int) (iter.Seq[T], string)) Listing {
	return func(after string, limit int) (iter.Seq[any], string) {
		values, next := of(after, limit)
		return func(yield func(any) bool) {
			for value := range values {
				if !yield(value) {
					return
				}
			}
		}, next
	}
}
