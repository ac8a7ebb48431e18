"""For servers of tests: each connection in a thread of its own."""
import threading


def serve_each(listener, serve):
    """SERVE(connection) for each, until LISTENER is closed. Returns at once."""
    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
