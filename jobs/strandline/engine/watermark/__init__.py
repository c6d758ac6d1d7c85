"""The watermark of observed arrivals: cells, and when thresholds were reached (crossings)."""
