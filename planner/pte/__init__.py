"""The `.pte` front end: a program that is planned already to dataflows, and back."""
