"""The commands of `arena`, one file each: its arguments, and what it does."""
