"""`contextgauge top`: sessions live in the terminal. State and keys are apart from the terminal."""
