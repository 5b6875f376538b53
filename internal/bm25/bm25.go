// Package bm25 ranks texts by the words that they share with a query (Robertson and Zaragoza, "The
// Probabilistic Relevance Framework: BM25 and Beyond", 2009). It is pure.
package bm25

import (
	"math"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
)

// The usual parameters: how soon repetitions of a word stop counting, and the weight of a text's
// length.
const (
	k1 = 1.2
	b  = 0.75
)

// Scores returns how well each text fits the query: 0 if they share no significant word, higher is
// better. Only the order of scores is meaningful. The texts are given as their [Words], joined by
// blanks.
func Scores(query string, terms []string) []float64 {
	number := map[string]int{} // the query's words
	for _, w := range Words(query) {
		if _, ok := number[w]; !ok {
			number[w] = len(number)
		}
	}
	type found struct{ word, times int }
	docs := make([][]found, len(terms))
	lengths := make([]float64, len(terms))
	containing := make([]float64, len(number))
	times := make([]int, len(number))
	var total float64
	for i, doc := range terms {
		var seen []int
		for w := range strings.FieldsSeq(doc) {
			lengths[i]++
			n, ok := number[w]
			if !ok {
				continue
			}
			if times[n]++; times[n] == 1 {
				seen = append(seen, n)
				containing[n]++
			}
		}
		for _, n := range seen {
			docs[i] = append(docs[i], found{n, times[n]})
			times[n] = 0
		}
		total += lengths[i]
	}
	mean := total / float64(max(len(terms), 1))
	scores := make([]float64, len(terms))
	for i, doc := range docs {
		for _, f := range doc {
			n, tf := containing[f.word], float64(f.times)
			idf := math.Log(1 + (float64(len(terms))-n+0.5)/(n+0.5))
			scores[i] += idf * tf * (k1 + 1) / (tf + k1*(1-b+b*lengths[i]/mean))
		}
	}
	return scores
}

// Words returns the stems of a text's words, in order, without stop words. Names are split at
// capitals, underscores and the like.
func Words(text string) []string {
	var words []string
	var word []rune
	end := func() {
		if w := strings.ToLower(string(word)); len(w) > 1 && !english.IsStopWord(w) {
			words = append(words, english.Stem(w, true))
		}
		word = word[:0]
	}
	lower := false
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			lower = false
			continue
		case unicode.IsUpper(r) && lower:
			end()
		}
		lower = unicode.IsLower(r)
		word = append(word, r)
	}
	end()
	return words
}
