"""Tables and files of a lake: places, reads, writes, schemas, and the lock of a pipeline."""
