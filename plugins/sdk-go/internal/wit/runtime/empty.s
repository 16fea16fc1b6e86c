// Without an assembly file the compiler takes no functions without a body, and procPin in runtime.go is one.
