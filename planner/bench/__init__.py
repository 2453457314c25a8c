"""Problems times planners: measured in processes of their own, judged by the verifier, written down row by row."""
