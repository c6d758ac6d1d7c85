"""Publishing under the lock: a run, a prepared run, and the end of an abandoned one."""
