"""The watermark of observed arrivals: cells, and crossings: when it reached thresholds."""
