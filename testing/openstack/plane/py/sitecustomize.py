"""Loaded by each Python process of the plane before its program."""
import gc
# By default collections of garbage take a tenth of the services' processor time (docs/design/ci-time.md).
gc.set_threshold(100_000, 50, 100)
