"""Processes killed by SIGKILL at random moments: every run ends as if nothing had happened, to the bit."""
