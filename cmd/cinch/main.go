// Command cinch is an agent harness for coding.
package main

import "os"

func main() { os.Exit(0) }
