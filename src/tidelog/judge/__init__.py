"""Pure judges: a history of operations goes in, evidence of anomalies comes out."""
