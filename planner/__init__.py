"""What to place and what it means: front ends, sharing, files, the second judge, the command."""
