"""Sessions of the engines: the only package that uses more than the public DataFrame API.

Everything that touches a JVM, a server or a port is here.
"""
