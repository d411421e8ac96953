"""What a person types: argument parsing and printing, nothing else."""
