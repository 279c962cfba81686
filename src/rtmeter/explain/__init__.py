"""The kernel's events, releases and the thread that stamps come in; segments and causes go out."""
