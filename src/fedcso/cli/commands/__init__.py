"""The commands of `fedcso`, one a file: HELP in a line, main(arguments) -> exit code."""
