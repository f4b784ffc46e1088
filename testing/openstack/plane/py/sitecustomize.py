"""Loaded by each Python process of the plane before its program."""
import gc
# A service keeps half a million objects, which Python's default has it go through every few requests.
gc.set_threshold(100_000, 50, 100)
