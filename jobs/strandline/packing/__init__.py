"""The package of a cluster: a folder with the wheel, a packed environment and the locked jars."""
