package window

import "fmt"

// A Switch is a change that makes a warm cache useless: what an upstream would
// have read from it has to be sent and paid for anew.
type Switch struct {
	// What is the change, as in "The model opus becomes haiku".
	What string
	Warm int // tokens in the cache, as Builder.Warm tells
	// Stay is what reading them once more costs without the change, Break what
	// sending them anew costs with it. US dollars; 0 for unknown.
	Stay, Break float64
}

// Question asks a person whether the change is worth its price.
func (s Switch) Question() string {
	q := fmt.Sprintf("%s. About %s tokens of this conversation are in the cache, and the next request pays for them anew", s.What, count(s.Warm))
	if s.Break > 0 {
		q += fmt.Sprintf(": %s instead of %s", dollars(s.Break), dollars(s.Stay))
	}
	return q + ". Switch?"
}

// dollars writes a price so that small ones can be told apart.
func dollars(usd float64) string {
	if usd < 0.1 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}
