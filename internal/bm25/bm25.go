// Package bm25 says how well texts fit a query, by the words that they share
// (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
// Beyond", 2009). It is pure, and understands no word.
package bm25

import (
	"math"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
)

// The usual parameters: how soon a word's repetition stops counting, and how much
// a text's length does.
const (
	k1 = 1.2
	b  = 0.75
)

// Scores are how well each text fits the query: 0 if they share no word that
// tells anything, higher is better. Only the order of the scores means something.
func Scores(query string, texts []string) []float64 {
	docs := make([]map[string]int, len(texts))
	lengths := make([]float64, len(texts))
	containing := map[string]int{}
	var total float64
	for i, text := range texts {
		docs[i] = map[string]int{}
		for _, w := range Words(text) {
			if docs[i][w]++; docs[i][w] == 1 {
				containing[w]++
			}
			lengths[i]++
		}
		total += lengths[i]
	}
	mean := total / float64(max(len(texts), 1))
	scores := make([]float64, len(texts))
	asked := map[string]bool{}
	for _, w := range Words(query) {
		if asked[w] {
			continue
		}
		asked[w] = true
		n := float64(containing[w])
		idf := math.Log(1 + (float64(len(texts))-n+0.5)/(n+0.5))
		for i, doc := range docs {
			if f := float64(doc[w]); f > 0 {
				scores[i] += idf * f * (k1 + 1) / (f + k1*(1-b+b*lengths[i]/mean))
			}
		}
	}
	return scores
}

// Words are the stems of a text's words, in order, without those that every text
// has. Names are taken apart at capitals, underscores and the like.
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
