"""What we time, against what, as ratios in one interleaved run. Timings are not tests."""
