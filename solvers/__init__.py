"""Pure combinatorics on integers: buffers and colocations in, offsets and proofs out."""
