"""The mission in one command: orders through brokers and Spark while both are being killed.

`mission.run` plays it; `accounts` says what became of every order; `cli/demo.py` prints it.
"""
