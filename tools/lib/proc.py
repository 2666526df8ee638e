"""Child processes that leave nothing behind: no time-out, Ctrl-C or `kill` lets one live on.

Each child leads a process group of its own, so that ending it ends what it started (a compiler
under make under Verilator) as well.
"""

import os
import queue
import signal
import subprocess
import threading

TERM_SECONDS = 2  # for a child to end what it started
TIMED_OUT = 124  # the exit status that the `timeout` command gives

_running = set()  # the children at work now, in whatever thread


def execute(command, cwd, timeout, env=None):
    """Run a command and return (exit status, its stdout and stderr as one text).

    A child ended by signal n gives 128 + n, as in the shell; a time-out gives TIMED_OUT.
    Raises OSError when the command cannot be started.
    """
    if threading.current_thread() is threading.main_thread():
        # Signals interrupt the main thread alone: elsewhere a child is started and noted in peace.
        (_, result), = side_by_side(lambda same: execute(same, cwd, timeout, env), [command], 1)
        return result
    child = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             start_new_session=True)
    _running.add(child)
    try:
        output, _ = child.communicate(timeout=timeout)
        status = child.returncode
    except subprocess.TimeoutExpired:
        _end(child)
        output, _ = child.communicate()
        status = TIMED_OUT
    finally:
        _running.discard(child)
        child.stdout.close()
    if status < 0:
        status = 128 - status
    return status, output.decode("utf-8", "replace")


def side_by_side(function, items, workers):
    """Yield (item, function(item)) as the items end, at most `workers` of them at a time.

    They run in threads, for functions that mostly wait for a child. When the caller gives up
    (an exception, Ctrl-C), the children at work are ended and the items not yet begun dropped.
    """
    waiting = list(reversed(items))
    count = len(waiting)
    ended = queue.Queue()
    threads = [threading.Thread(target=_work, args=(function, waiting, ended))
               for _ in range(min(workers, count))]
    try:
        for thread in threads:
            thread.start()
        for _ in range(count):
            item, result, error = ended.get()
            if error:
                raise error
            yield item, result
    except BaseException:
        waiting.clear()
        # Again and again: an item may be about to start its next child.
        while any(thread.is_alive() for thread in threads):
            for child in list(_running):
                _end(child)
            for thread in threads:
                if thread.is_alive():
                    thread.join(0.05)
        raise


def _work(function, waiting, ended):
    """A thread of side_by_side: take items until none is left."""
    while waiting:
        try:
            item = waiting.pop()
        except IndexError:  # another thread was faster
            return
        try:
            ended.put((item, function(item), None))
        except BaseException as error:
            ended.put((item, None, error))


def _end(child):
    """End the child's process group: a script of ours first ends what it started, then all die."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except (ProcessLookupError, PermissionError):  # ended already
            return
        try:
            child.wait(TERM_SECONDS)
        except subprocess.TimeoutExpired:
            pass
