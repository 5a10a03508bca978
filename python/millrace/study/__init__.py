"""`trainer study`: trains variants of a configuration with several seeds and compares them.

python -m millrace.study CONFIG --seeds N [--vary K=A,B]
"""
