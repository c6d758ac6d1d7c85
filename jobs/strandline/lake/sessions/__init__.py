"""The room of the engines: each session says which it is, what it cannot do, and keeps rows.

All else uses the public DataFrame API alone; what touches a JVM, a server or a port is here.
"""
