"""The command line: the entry point, the parser with the options, and the commands."""
