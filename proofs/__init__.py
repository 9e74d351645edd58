"""The proofs: each room proves what the room of that name in spec/ defines.

Only the kernel, in `trusted`, makes theorems; `tools` is what proofs share.
"""
