"""The theorems as functions, and estimates of what they depend on: bias, noise and the constants of the assumptions."""
