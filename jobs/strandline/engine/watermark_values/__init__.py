"""The values of the watermark at positions, for the firings and late records that report them."""
