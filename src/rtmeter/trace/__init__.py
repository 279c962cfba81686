"""The pages of a tracefs instance come in; the kernel's events of a run, as explain/ takes them, go out."""
