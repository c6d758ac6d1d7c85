"""The `strandline` command: it reads arguments, makes one run or one read, and shows the result."""

import signal
from threading import current_thread, main_thread

if current_thread() is main_thread():
    # Ctrl-C while modules are imported ends the process without a traceback
    _before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from strandline.cli.main import main
    finally:
        signal.signal(signal.SIGINT, _before)
else:
    from strandline.cli.main import main

__all__ = ["main"]
