"""Sessions of Spark, whichever engine is behind them."""
