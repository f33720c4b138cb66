"""The theorems with numbers, and what can be measured of them: bias, noise, the constants of the assumptions."""
