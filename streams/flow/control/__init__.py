"""The control plane: what follows from records (alerts, decisions), and carrying out commands."""
