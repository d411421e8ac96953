"""Pure judges: a history of operations, or facts about a cluster, go in; anomalies come out.

| modules | what they are about |
|---|---|
| anomalies | the catalogue: every anomaly of the house, its meaning and its evidence |
| history, excuses | what clients did and were answered; what lets records go |
| lost_records, wrong_records, reordered | the checks of what a log holds |
| reader_answers, stale, metadata_answers | the checks of what clients were answered |
| history_checks | all of them over one history |
| cluster/ | invariants of a running cluster, after every step |
| groups/ | consumer groups: ownership, commits, generations |
"""
