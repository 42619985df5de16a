package cli

// Version is the version of the program; the linker may set it.
var Version = "0.1.0"
