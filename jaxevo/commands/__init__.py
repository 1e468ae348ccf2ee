"""The commands: flags in, one library call, words out. Flags exist here alone.

Each module is a command of its own and defines its flags when it is imported, so one process
imports one of them. `launch/*.py` and `python -m jaxevo` call them.
"""
