"""Real networks, exported by ExecuTorch, as planning problems."""
