"""The replay: windows that fire by another trigger than the default, evict, or fire early."""
