"""`trainer study`: variants of a configuration, each trained with several seeds, and what differs.

python -m millrace.study CONFIG --seeds N [--vary K=A,B]
"""
