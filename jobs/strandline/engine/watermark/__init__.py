"""What arrivals say about the watermark: cells, values at positions, violations of order."""
