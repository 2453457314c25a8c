"""What a program is to the planner: ops, tensors, lifetimes, and what may share storage.

May import: the solvers. Start with `dataflow`, which every front end makes; `share_rules` looks at one op, `sharing` at
all under a policy; `views` and `kernels` know what the runtime's operators do, `tensor_layout` how a tensor lies in
memory; `alignment` says what parts need, `banking` puts a program's tensors into banks.
"""
