"""The kernel's events and a thread → its jobs, each with its release: how punctual a program is as it is."""
