"""The pages of a tracefs instance → the kernel's events of a run, as explain/ takes them."""
