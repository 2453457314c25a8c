"""Which of the optional colocations to have active.

May import: place and what that may. Start with `stages`: greedy first, then a choice by loads alone (`load_model`),
then choice and placement in one model (`joint_model`). `atoms` cuts buffers so that ties map whole pieces, `presence`
says which of them need bytes of their own, `contradictions` what cannot go together, `most_sharing` the most that can.
"""
