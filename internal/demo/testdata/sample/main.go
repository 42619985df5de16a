// Command ferry prints the price list.
package main

import (
	"fmt"

	"example.com/ferry/tickets"
)

func main() {
	for _, k := range tickets.Kinds() {
		fmt.Printf("%-8s %5d\n", k, tickets.Price(k, 1))
	}
}
