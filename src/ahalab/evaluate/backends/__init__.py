"""What generates answers: transformers now; every backend hands over `Completion`s."""
