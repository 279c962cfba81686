"""The kernel's events, releases and the thread that stamps → segments and causes."""
