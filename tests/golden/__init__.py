"""The differential oracle: the same requests to Apache Kafka and to Tidelog, answers compared.

`cases/` says what is asked, `recordings/` what Apache Kafka answered, `explained.py` where Tidelog
answers otherwise on purpose. `python -m tests.golden` records anew and compares live.
"""
