"""Sessions: records that hang together, without walking over them in the order of arrival."""
